"""Answers as values: what Go's programs write, and what nobody should."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from windlass.kube.client.objects import TypedObject
from windlass.kube.decoding import DecodingError, Message, ObjectDecoders, decode_json
from windlass.kube.redactions import Redactor
from windlass.printable_text import MAX_MESSAGE_LENGTH


class Part(msgspec.Struct, frozen=True):
    name: str = "none"


class Thing(TypedObject, frozen=True):
    parts: tuple[Part, ...] = ()
    sizes: dict[int, int] = msgspec.field(default_factory=dict)
    optional: str | None = "set"


DECODER = msgspec.json.Decoder(Thing)


def thing(**fields: Any) -> Thing:
    return decode_json(json.dumps({"metadata": {"name": "a"}, **fields}).encode(), DECODER)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"metadata": {"name": "a", "labels": None, "annotations": None, "creationTimestamp": None, "finalizers": None}},
        {"parts": None, "sizes": None},
    ],
)
def test_a_null_is_a_field_left_out(fields: dict[str, Any]) -> None:
    assert thing(**fields) == thing()


def test_a_null_deep_inside_changes_nothing_else() -> None:
    assert thing(parts=[{"name": None}, {"name": "b"}], sizes={"1": 2}).parts == (Part("none"), Part("b"))
    assert thing(parts=[{"name": None}], sizes={"1": 2}).sizes == {1: 2}


def test_a_null_that_has_its_place_stays() -> None:
    assert thing(optional=None).optional is None


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "truncated"),
        (b"hunter2", "malformed"),
        (b'{"metadata": {"name": "\xff"}}', "utf-8"),
        (b'{"metadata": null}', "`$.metadata`"),
        (b'{"metadata": {"name": 7, "uid": "hunter2"}}', "`$.metadata.name`"),
        (b'{"metadata": {}, "unknown": ' + b"[" * 100_000, "depth"),
        (b'{"metadata": {"name": null}, "unknown": ' + b"[" * 100_000, "`$.metadata.name`"),
    ],
    ids=["nothing", "text", "bytes", "nothing left", "another type", "an abyss", "an abyss after a null"],
)
def test_what_cannot_be_read_is_named_and_not_shown(content: bytes, problem: str) -> None:
    with pytest.raises(DecodingError) as caught:
        decode_json(content, DECODER)
    assert problem in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__suppress_context__


class Told(TypedObject, frozen=True):
    message: Message | None = None
    sizes: dict[int, int] = msgspec.field(default_factory=dict)


@pytest.mark.parametrize("more", [{}, {"sizes": None}], ids=["at once", "after nulls were left out"])
def test_a_message_is_short_and_printable_as_soon_as_it_is_decoded(more: dict[str, Any]) -> None:
    decoders = ObjectDecoders(Redactor(["correct-horse"]).message)
    for message, shown in (
        ("as it is", "as it is"),
        ("two\nlines\x1b[0m of correct-horse", "two lines of [redacted]"),
        (None, None),
    ):
        item = {"metadata": {}, "message": message, **more}
        assert decode_json(json.dumps(item).encode(), decoders.decoder(Told)).message == shown
        assert more or decoders.convert(item, Told).message == shown
    long = decode_json(json.dumps({"metadata": {}, "message": "x " * 200_000}).encode(), decoders.decoder(Told))
    assert long.message is not None
    assert len(long.message) <= MAX_MESSAGE_LENGTH + 3


def test_what_is_no_text_is_no_message() -> None:
    decoders = ObjectDecoders(str)
    for item in ({"metadata": {}, "message": 7}, {"metadata": {}, "message": ["hunter2"]}):
        with pytest.raises(DecodingError, match=r"Expected `str`.*message") as info:
            decode_json(json.dumps(item).encode(), decoders.decoder(Told))
        assert "hunter2" not in str(info.value)
        with pytest.raises(DecodingError, match="Expected `str`"):
            decoders.convert(item, Told)
