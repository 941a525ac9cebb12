"""Mistakes of a first use in files: each is one clear problem, and none hides another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.settings.setting_files import ENVIRONMENT, spec

if TYPE_CHECKING:
    from tests.settings.setting_files import World


def test_l14_unknown_fields_do_not_hide_unknown_names(world: World) -> None:
    world.file("dag", spec("stacks: [{name: a, applications: [{name: x, dependson: [y], dependsOn: [z]}]}]"))
    assert world.mistakes() == [
        "dag.yaml:5:47: unknown field spec.stacks.0.applications.0.dependson (did you mean dependsOn?)",
        "dag.yaml:5:75: x depends on z, which does not exist",
    ]


def test_l15_files_that_are_swapped_are_one_problem(world: World) -> None:
    world.file("dag", ENVIRONMENT)
    assert world.mistakes() == [
        "dag.yaml:1:1: this is an environment file, not a platform file (are --dag and --environment-file swapped?)"
    ]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        (
            "gitRepository",
            "not a url",
            "must be the address of a git repository: https://host/path, git@host:path or /path",
        ),
        ("domain", "not_a domain!", "must be a domain name such as eu.example.org"),
        ("gitPath", "../../etc", "must be a path inside the repository: relative, and without .."),
        ("gitPath", "/etc", "must be a path inside the repository: relative, and without .."),
    ],
)
def test_l23_values_that_cannot_be_right(world: World, field: str, value: str, message: str) -> None:
    lines = [line for line in ENVIRONMENT.splitlines() if not line.startswith(f"{field}:")]
    world.file("environment-file", "\n".join([*lines, f"{field}: '{value}'", ""]))
    assert [mistake.partition(": ")[2] for mistake in world.mistakes()] == [f"{field} {message}"]
