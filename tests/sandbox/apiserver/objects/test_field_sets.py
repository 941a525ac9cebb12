"""Sets of fields, and who owns what after which write."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.sandbox.apiserver.objects import field_sets, managed_fields
from windlass.sandbox.apiserver.objects.managed_fields import FieldManager
from windlass.sandbox.apiserver.objects.schemas import parse_compact_schema
from windlass.sandbox.apiserver.wire.api_status import StatusError

SHAPE = parse_compact_schema("spec.items[name]\nspec.tags[]\nspec.whole{}")
STEPS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
SETS: Any = st.recursive(
    st.just({".": {}}), lambda below: st.dictionaries(STEPS, below, min_size=1, max_size=3), max_leaves=8
).filter(lambda found: found != {".": {}})


@given(SETS, SETS)
def test_sets_of_fields_are_sets(left: Any, right: Any) -> None:
    def paths(fields: Any) -> set[str]:
        return set(field_sets.paths(fields))

    assert paths(field_sets.union(left, right)) == paths(left) | paths(right)
    assert paths(field_sets.difference(left, right)) == paths(left) - paths(right)
    assert paths(field_sets.intersection(left, right)) == paths(left) & paths(right)
    assert paths(field_sets.to_fields_v1(left)) == paths(left)


def writer(name: str, operation: str = "Apply") -> FieldManager:
    return FieldManager(name, operation, "v1", time="2030-01-01T00:00:00Z")


def apply(live: Any, name: str, *, force: bool = False, **spec: Any) -> Any:
    config = {"metadata": {"name": "x"}, **({"spec": spec} if spec else {})}
    return managed_fields.server_side_apply(live, config, SHAPE, writer(name), force=force)


def owned(body: Any, name: str) -> list[str]:
    entries = body["metadata"].get("managedFields", [])
    return [p for e in entries if e["manager"] == name for p in field_sets.paths(e["fieldsV1"])]


def test_what_is_applied_is_owned_and_what_is_no_longer_applied_goes() -> None:
    first = apply(None, "one", a=1, b=2)
    assert owned(first, "one") == [".spec.a", ".spec.b"]
    second = apply(first, "one", a=1)
    assert second["spec"] == {"a": 1}
    assert owned(second, "one") == [".spec.a"]


def test_a_shared_field_stays_until_the_last_owner_lets_go() -> None:
    both = apply(apply(None, "one", a=1), "two", a=1)
    assert apply(both, "one")["spec"] == {"a": 1}
    assert "a" not in apply(apply(both, "one"), "two").get("spec", {})


def test_a_conflict_names_manager_and_fields_and_force_takes_them() -> None:
    live = apply(None, "one", a=1, items=[{"name": "x", "size": 1}])
    with pytest.raises(StatusError) as refused:
        apply(live, "two", a=2, items=[{"name": "x", "size": 2}])
    assert str(refused.value) == (
        'Apply failed with 2 conflicts: conflicts with "one":\n- .spec.a\n- .spec.items[name="x"].size'
    )
    taken = apply(live, "two", force=True, a=2)
    assert taken["spec"]["a"] == 2
    assert ".spec.a" not in owned(taken, "one")


def test_an_ordinary_write_takes_what_it_changes_and_only_that() -> None:
    live = apply(None, "one", a=1, b=2)
    changed = managed_fields.after_update(live, {**live, "spec": {"a": 5, "b": 2}}, SHAPE, writer("hand", "Update"))
    assert owned(changed, "one") == [".spec.b"]
    assert owned(changed, "hand") == [".spec.a"]
    with pytest.raises(StatusError, match=r'conflict with "hand" using v1: \.spec\.a'):
        apply(changed, "one", a=1, b=2)


ORDERS: list[Any] = [
    (["a"], ["b"], ["a", "b"]),
    (["a", "b"], ["b", "a"], ["b", "a"]),
    (["a", "b"], ["c", "b"], ["a", "c", "b"]),
    (["a", "b", "c"], ["c"], ["a", "b", "c"]),
]


@pytest.mark.parametrize(("live", "applied", "merged"), ORDERS, ids=str)
def test_the_order_of_a_merged_list(live: list[str], applied: list[str], merged: list[str]) -> None:
    before = apply(None, "one", tags=live)
    assert apply(before, "two", tags=applied)["spec"]["tags"] == merged
