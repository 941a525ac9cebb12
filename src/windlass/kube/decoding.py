"""JSON of API servers decoded into typed values, with Go's tolerance for nulls; messages in them are made short.

Pure functions. Error messages never contain the decoded content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from msgspec import Raw

A = TypeVar("A")
_Tree = TypeVar("_Tree")

DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # includes ValidationError


class Message(str):
    """A text for people that another program wrote, on one printable line of limited length."""

    __slots__ = ()


class DecodingError(ValueError):
    """Names a position or a field, never the content, which may be a Secret."""


def decode_json(content: bytes | Raw, decoder: msgspec.json.Decoder[A]) -> A:
    """Decode `content`; a null that the type does not allow counts as a missing field.

    Go encodes nil slices and maps as null. Raises `DecodingError`.
    """
    try:
        return decoder.decode(content)
    except msgspec.ValidationError as error:
        try:
            tree = without_nulls(msgspec.json.decode(content))
            return msgspec.convert(tree, decoder.type, str_keys=True, dec_hook=decoder.dec_hook)
        except DECODE_ERRORS:
            raise DecodingError(str(error)) from None
    except DECODE_ERRORS as error:
        raise DecodingError(str(error)) from None


class ObjectDecoders:
    """The decoders of one connection, by type. `shorten` makes each `Message` as soon as it is decoded."""

    def __init__(self, shorten: Callable[[str], str]) -> None:
        self._shorten = shorten
        self._decoders: dict[Any, msgspec.json.Decoder[Any]] = {}

    def decoder(self, into: Any) -> msgspec.json.Decoder[Any]:
        if into not in self._decoders:
            self._decoders[into] = msgspec.json.Decoder(into, dec_hook=self._hook)
        return self._decoders[into]

    def convert(self, item: Any, into: type[A]) -> A:
        """A decoded object as a typed one. Raises `DecodingError`."""
        try:
            return msgspec.convert(item, into, dec_hook=self._hook)
        except msgspec.ValidationError as error:
            raise DecodingError(str(error)) from None

    def _hook(self, _: type, value: Any) -> Message:
        """Called for the only type here that the decoder does not know."""
        if not isinstance(value, str):
            raise TypeError(f"Expected `str`, got `{type(value).__name__}`")
        return Message(self._shorten(value))


def without_nulls(tree: _Tree) -> _Tree:
    """A copy of `tree` without the mapping entries whose value is null."""
    if isinstance(tree, dict):
        return {key: without_nulls(value) for key, value in tree.items() if value is not None}  # type: ignore[return-value]
    if isinstance(tree, list):
        return [without_nulls(item) for item in tree]  # type: ignore[return-value]
    return tree
