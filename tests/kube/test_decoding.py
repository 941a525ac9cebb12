"""Answers as values: what Go's programs write, and what nobody should."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from windlass.kube.client.objects import TypedObject
from windlass.kube.decoding import DecodingError, decode_json


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
