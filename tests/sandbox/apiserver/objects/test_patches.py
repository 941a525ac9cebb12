"""Patches as tables: what is there, the patch, what comes of it."""

from __future__ import annotations

from typing import Any

import pytest

from windlass.sandbox.apiserver.objects import patches
from windlass.sandbox.apiserver.objects.schemas import parse_compact_schema
from windlass.sandbox.apiserver.wire.api_status import StatusError

SHAPE = parse_compact_schema("containers[name].env[name]\nfinalizers[]\nselector{}")

MERGES: list[Any] = [
    pytest.param({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, id="adds"),
    pytest.param({"a": {"x": 1, "y": 2}}, {"a": {"x": None}}, {"a": {"y": 2}}, id="null removes"),
    pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="lists are replaced"),
    pytest.param({"a": "text"}, {"a": {"b": 1}}, {"a": {"b": 1}}, id="a mapping replaces text"),
    pytest.param({}, {"a": {"b": None}}, {"a": {}}, id="null inside of what is new"),
]


@pytest.mark.parametrize(("target", "patch", "expected"), MERGES)
def test_merge_patch(target: Any, patch: Any, expected: Any) -> None:
    before = str(target)
    assert patches.merge_patch(target, patch) == expected
    assert str(target) == before, "the old value is left alone"


STRATEGIC: list[Any] = [
    pytest.param(
        {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]},
        {"containers": [{"name": "a", "image": "2"}, {"name": "c"}]},
        {"containers": [{"name": "a", "image": "2"}, {"name": "b"}, {"name": "c"}]},
        id="items are merged by their key",
    ),
    pytest.param(
        {"containers": [{"name": "a"}, {"name": "b"}]},
        {"containers": [{"name": "a", "$patch": "delete"}]},
        {"containers": [{"name": "b"}]},
        id="an item is deleted",
    ),
    pytest.param(
        {"containers": [{"name": "a"}]},
        {"containers": [{"$patch": "replace"}, {"name": "b"}]},
        {"containers": [{"name": "b"}]},
        id="a list is replaced",
    ),
    pytest.param({"finalizers": ["x"]}, {"finalizers": ["y", "x"]}, {"finalizers": ["x", "y"]}, id="a set is joined"),
    pytest.param(
        {"finalizers": ["x", "y"]},
        {"$deleteFromPrimitiveList/finalizers": ["x"]},
        {"finalizers": ["y"]},
        id="from a set",
    ),
    pytest.param({"other": [1]}, {"other": [2]}, {"other": [2]}, id="other lists are replaced"),
    pytest.param({"a": {"x": 1}}, {"a": {"$patch": "replace", "y": 2}}, {"a": {"y": 2}}, id="a mapping is replaced"),
    pytest.param({"a": {"x": 1}, "b": 1}, {"a": {"$patch": "delete"}}, {"b": 1}, id="a mapping is deleted"),
    pytest.param(
        {"a": {"x": 1, "y": 1}}, {"a": {"$retainKeys": ["y"], "y": 2}}, {"a": {"y": 2}}, id="only some keys are kept"
    ),
]


@pytest.mark.parametrize(("target", "patch", "expected"), STRATEGIC)
def test_strategic_merge_patch(target: Any, patch: Any, expected: Any) -> None:
    assert patches.strategic_merge_patch(target, patch, SHAPE) == expected


OPERATIONS: list[Any] = [
    pytest.param({"a": 1}, [{"op": "add", "path": "/b", "value": 2}], {"a": 1, "b": 2}, id="add"),
    pytest.param({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}, id="insert"),
    pytest.param({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}, id="append"),
    pytest.param({"a": 1}, [{"op": "remove", "path": "/a"}], {}, id="remove"),
    pytest.param({"a/b": 1}, [{"op": "replace", "path": "/a~1b", "value": 2}], {"a/b": 2}, id="an escaped name"),
    pytest.param({"a": 1}, [{"op": "move", "from": "/a", "path": "/b"}], {"b": 1}, id="move"),
    pytest.param(
        {"a": {"x": 1}}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": {"x": 1}, "b": {"x": 1}}, id="copy"
    ),
    pytest.param({"a": 1}, [{"op": "test", "path": "/a", "value": 1}], {"a": 1}, id="test"),
    pytest.param({"a": [1, 2]}, [{"op": "replace", "path": "/a/0", "value": 3}], {"a": [3, 2]}, id="replace an item"),
]


@pytest.mark.parametrize(("target", "operations", "expected"), OPERATIONS)
def test_json_patch(target: Any, operations: Any, expected: Any) -> None:
    assert patches.json_patch(target, operations) == expected


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "remove", "path": "/gone"}],
        [{"op": "test", "path": "/a", "value": 2}],
        [{"op": "add", "path": "/gone/x", "value": 1}],
        [{"op": "add", "path": "no slash", "value": 1}],
        [{"op": "jump", "path": "/a"}],
        [{"op": "add", "path": "/list/9", "value": 1}],
    ],
    ids=str,
)
def test_a_json_patch_that_does_not_fit_is_refused(operations: Any) -> None:
    with pytest.raises(StatusError) as refused:
        patches.json_patch({"a": 1, "list": []}, operations)
    assert refused.value.code == 422
