"""What lint warns of."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.builders import NEW, NOW, platform, snapshot, source, state
from windlass.core.platform.model.applications import Stack
from windlass.core.platform.model.snapshots import ResourceState, Snapshot
from windlass.core.platform.planning.lint_warnings import (
    automated_sync_warnings,
    platform_warnings,
    redundant_dependencies,
)

if TYPE_CHECKING:
    from windlass.core.platform.model.snapshots import NodeState


def test_a_platform_in_order_is_beyond_suspicion() -> None:
    assert list(platform_warnings(platform("keycloak: postgres; ready+: postgres"))) == []


def test_nothing_at_all() -> None:
    assert list(platform_warnings(platform(""))) == [("", "the platform has no applications")]


def test_a_part_that_is_nothing() -> None:
    found = platform_warnings(platform("a", managed_nodes=frozenset()))
    assert list(found) == [("", "`only` selects no application")]


def test_a_stack_that_stands_alone() -> None:
    made = platform("b: a; c")
    applications = {name: replace(node, stack=name) for name, node in made.applications.items()}
    stacks = tuple(Stack(name, (name,)) for name in applications)
    found = list(platform_warnings(replace(made, stacks=stacks, applications=applications)))
    assert found == [("", "stack c has no dependency on another stack, and none depends on it")]


def test_what_is_expected_to_fail() -> None:
    made = platform("ceph", minutes={"ceph": 11})
    assert list(platform_warnings(made)) == [("ceph", "ceph is expected to take longer than its timeouts allow")]
    assert made.expected_durations["ceph"] == timedelta(minutes=11)


@pytest.mark.parametrize("changes", [{"health": timedelta()}, {"stability": timedelta(minutes=60)}])
def test_m15_timeouts_that_no_application_can_keep(changes: dict[str, timedelta]) -> None:
    made = platform("ceph")
    node = made.applications["ceph"]
    timing = replace(node.timing, expected=timedelta(), **changes)
    made = replace(made, applications={"ceph": replace(node, timing=timing)})
    assert list(platform_warnings(made)) == [
        ("ceph", "ceph can never succeed: it must be healthy for longer than its health timeout")
    ]


def test_a_resource_that_nobody_makes() -> None:
    assert list(platform_warnings(platform("ready+"))) == [
        ("ready", "ready is an object without dependencies: which application creates it?")
    ]


def test_implied_dependencies() -> None:
    assert list(redundant_dependencies(platform("c: a b; b: a"))) == [
        ("c", "a", "c depends on a already, through other dependencies")
    ]


@pytest.mark.parametrize(
    ("changes", "is_told"),
    [
        ({}, True),
        ({"is_automated": False}, False),
        ({"sources": (source(NEW),)}, False),
        ({"sources": (source(NEW), source("main"))}, True),
        ({"sources": (source("1.2.3", is_chart=True),)}, False),
        ({"sources": (source("1.*", is_chart=True),)}, True),
    ],
)
def test_what_syncs_itself_from_a_moving_ref_goes_out_of_order(changes: dict[str, Any], is_told: bool) -> None:
    each = state(is_automated=True, sources=(source("main"),))
    states: dict[str, NodeState] = {"web": replace(each, **changes), "db": each, "ready": ResourceState(), "gone": each}
    found = list(automated_sync_warnings(platform("web: db; ready+: db; absent: db"), Snapshot(NOW, states)))
    assert [name for name, _ in found] == (["web"] if is_told else []), "db waits for nothing"


def test_the_moving_refs_are_named() -> None:
    each = state(is_automated=True, sources=(source("main"), source(NEW), source("1.*", is_chart=True)))
    assert list(automated_sync_warnings(platform("web: db"), snapshot(web=each))) == [
        ("web", "web syncs automatically from 1.*, main, which can move: it may sync before its dependencies")
    ]
