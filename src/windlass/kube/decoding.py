"""JSON of API servers decoded into typed values, with Go's tolerance for nulls.

Pure functions. Error messages never contain the decoded content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

if TYPE_CHECKING:
    from msgspec import Raw

A = TypeVar("A")
_Tree = TypeVar("_Tree")

DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # includes ValidationError


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
            return msgspec.convert(without_nulls(msgspec.json.decode(content)), decoder.type, str_keys=True)
        except DECODE_ERRORS:
            raise DecodingError(str(error)) from None
    except DECODE_ERRORS as error:
        raise DecodingError(str(error)) from None


def without_nulls(tree: _Tree) -> _Tree:
    """A copy of `tree` without the mapping entries whose value is null."""
    if isinstance(tree, dict):
        return {key: without_nulls(value) for key, value in tree.items() if value is not None}  # type: ignore[return-value]
    if isinstance(tree, list):
        return [without_nulls(item) for item in tree]  # type: ignore[return-value]
    return tree
