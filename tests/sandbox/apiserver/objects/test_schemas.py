"""Dropping, filling in and judging, as tables."""

from __future__ import annotations

from typing import Any

import pytest

from windlass.sandbox.apiserver.objects import schema_validation, schemas

SCHEMA = schemas.parse_schema(
    {
        "type": "object",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer", "default": 1, "minimum": 1},
                    "word": {"type": "string", "nullable": True, "enum": ["a", "b"]},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"x": {}}}},
                    "port": {"x-kubernetes-int-or-string": True},
                },
            }
        },
    }
)

PRUNED: list[Any] = [
    pytest.param({"spec": {"size": 1, "odd": 1}}, {"spec": {"size": 1}}, ["spec.odd"], id="unknown"),
    pytest.param({"spec": {"size": 1, "odd": None}}, {"spec": {"size": 1}}, ["spec.odd"], id="unknown and null"),
    pytest.param(
        {"spec": {"size": 1, "free": {"any": [{"a": None}]}}},
        {"spec": {"size": 1, "free": {"any": [{"a": None}]}}},
        [],
        id="kept where all is",
    ),
    pytest.param(
        {"spec": {"size": 1, "map": {"k": {"x": 1, "y": 2}}}},
        {"spec": {"size": 1, "map": {"k": {"x": 1}}}},
        ["spec.map.k.y"],
        id="in a mapping",
    ),
    pytest.param({"kind": "K", "metadata": {"any": 1}}, {"kind": "K", "metadata": {"any": 1}}, [], id="metadata"),
]


@pytest.mark.parametrize(("given", "kept", "dropped"), PRUNED)
def test_what_a_schema_does_not_know_is_dropped_and_named(given: Any, kept: Any, dropped: list[str]) -> None:
    unknown: list[str] = []
    assert schemas.default_and_prune(given, SCHEMA, None, unknown, keep_nulls=True) == kept
    assert unknown == dropped


@pytest.mark.parametrize(
    ("given", "filled"),
    [
        ({"spec": {}}, {"spec": {"size": 1}}),
        ({"spec": {"size": None}}, {"spec": {"size": 1}}),
        ({"spec": {"size": 0}}, {"spec": {"size": 0}}),
        ({"spec": {"word": None}}, {"spec": {"word": None, "size": 1}}),
        ({}, {}),
    ],
    ids=str,
)
def test_defaults_are_filled_in(given: Any, filled: Any) -> None:
    assert schemas.default_and_prune(given, SCHEMA, None, [], keep_nulls=True) == filled


def test_a_built_in_kind_knows_no_null_and_what_is_known_is_not_copied() -> None:
    known = {"spec": {"free": {"any": 1}, "size": 2}}
    found = schemas.default_and_prune({"spec": {"free": {"any": 1}, "word": None}}, SCHEMA, known, [], keep_nulls=False)
    assert found == {"spec": {"free": {"any": 1}, "size": 1}}
    assert found["spec"]["free"] is known["spec"]["free"]


def test_what_is_filled_in_is_nobody_elses() -> None:
    schema = schemas.parse_compact_schema('status={"phase":"Pending"}')
    first, second = (schemas.default_and_prune({}, schema, None, [], keep_nulls=False) for _ in range(2))
    assert first == second == {"status": {"phase": "Pending"}}
    assert first["status"] is not second["status"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"spec": {"size": 1}}, ""),
        ({"spec": {"size": 2.0}}, ""),
        ({"spec": {"size": True}}, 'spec.size in body must be of type integer: "boolean"'),
        ({"spec": {"size": 0}}, "spec.size in body should be greater than or equal to 1"),
        ({"spec": {"word": "c"}}, 'Unsupported value: "c": supported values: "a", "b"'),
        ({"spec": {"word": None}}, ""),
        ({"spec": {"port": "http"}}, ""),
        ({"spec": {"port": 1.5}}, "must be of type integer,string"),
        ({}, "Required value"),
    ],
    ids=str,
)
def test_values_are_judged(value: Any, message: str) -> None:
    found = schema_validation.errors(value, SCHEMA)
    assert [message in error.message for error in found] == ([True] if message else [])


def test_what_was_there_before_is_not_judged_again() -> None:
    before = {"spec": {"size": 0, "word": "a"}}
    assert schema_validation.errors({"spec": {"size": 0, "word": "b"}}, SCHEMA, previous=before) == []
    assert len(schema_validation.errors({"spec": {"size": -1, "word": "a"}}, SCHEMA, previous=before)) == 1


def test_a_sketch_is_open_but_for_what_it_says() -> None:
    node = schemas.parse_compact_schema(
        "spec.replicas:integer=1\nspec.selector{}\nitems[name,port].port=80\ndata:texts\nset[]"
    )
    spec = node.field_schema("spec")
    assert (spec.field_schema("replicas").type, spec.field_schema("replicas").default) == ("integer", 1)
    assert spec.field_schema("selector").map_type == "atomic"
    assert node.field_schema("items").list_keys == ("name", "port")
    assert node.field_schema("items").item_schema.field_schema("port").default == 80
    assert node.field_schema("set").list_type == "set"
    assert schema_validation.first_type_error({"data": {"x": 1}}, node).startswith("data.x: ")
    assert schema_validation.first_type_error({"anything": [{"goes": 1}]}, node) == ""
