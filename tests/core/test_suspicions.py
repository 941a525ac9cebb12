"""What lint warns of."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from tests.builders import platform
from windlass.core.platform.applications import Stack
from windlass.core.platform.suspicions import implied, suspicions


def test_a_platform_in_order_is_beyond_suspicion() -> None:
    assert list(suspicions(platform("keycloak: postgres; ready+: postgres"))) == []


def test_nothing_at_all() -> None:
    assert list(suspicions(platform(""))) == [("", "the platform has no applications")]


def test_a_stack_that_stands_alone() -> None:
    made = platform("b: a; c")
    applications = {name: replace(node, stack=name) for name, node in made.applications.items()}
    stacks = tuple(Stack(name, (name,)) for name in applications)
    found = list(suspicions(replace(made, stacks=stacks, applications=applications)))
    assert found == [("", "stack c neither waits for another stack nor is waited for")]


def test_what_is_expected_to_fail() -> None:
    made = platform("ceph", minutes={"ceph": 11})
    assert list(suspicions(made)) == [("ceph", "ceph is expected to take longer than it may")]
    assert made.expected["ceph"] == timedelta(minutes=11)


def test_a_resource_that_nobody_makes() -> None:
    assert list(suspicions(platform("ready+"))) == [
        ("ready", "ready is a resource that waits for nothing: who makes it?")
    ]


def test_implied_dependencies() -> None:
    assert list(implied(platform("c: a b; b: a"))) == [("c", "a", "c waits for a anyway, through others")]
