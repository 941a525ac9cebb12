"""JSON from a server as typed values, read as Go's programs read it. Pure. Errors never show what was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

if TYPE_CHECKING:
    from msgspec import Raw

A = TypeVar("A")
_Tree = TypeVar("_Tree")

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # a wrong type is a DecodeError, too


class Unreadable(ValueError):
    """Names a position or a field, never the content: that may be a Secret."""


def read(content: bytes | Raw, decoder: msgspec.json.Decoder[A]) -> A:
    """A null where the type has no place for one is a field left out: Go writes its empty lists and maps like that."""
    try:
        return decoder.decode(content)
    except msgspec.ValidationError as error:
        try:
            return msgspec.convert(without_nulls(msgspec.json.decode(content)), decoder.type, str_keys=True)
        except UNREADABLE:
            raise Unreadable(str(error)) from None
    except UNREADABLE as error:
        raise Unreadable(str(error)) from None


def without_nulls(tree: _Tree) -> _Tree:
    """The same, without the fields that are null."""
    if isinstance(tree, dict):
        return {key: without_nulls(value) for key, value in tree.items() if value is not None}  # type: ignore[return-value]
    if isinstance(tree, list):
        return [without_nulls(item) for item in tree]  # type: ignore[return-value]
    return tree
