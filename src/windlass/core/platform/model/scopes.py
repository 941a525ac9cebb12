"""The scope of a command: `platform`, `stack:NAME` or `app:NAME`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from windlass.core.platform.model.suggestions import did_you_mean
from windlass.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.core.platform.model.applications import Platform

FORMS = "platform, stack:NAME or app:NAME"


class Extent(StrEnum):
    PLATFORM = "platform"
    STACK = "stack"
    APP = "app"


@dataclass(frozen=True, slots=True)
class Scope:
    extent: Extent = Extent.PLATFORM
    name: str = ""

    def __str__(self) -> str:
        return f"{self.extent}:{self.name}" if self.name else str(self.extent)

    @property
    def is_whole(self) -> bool:
        return self.extent is Extent.PLATFORM


def parse_scope(text: str) -> Scope:
    extent, colon, name = text.partition(":")
    if text == Extent.PLATFORM:
        return Scope()
    if extent in {Extent.STACK, Extent.APP} and colon and name:
        return Scope(Extent(extent), name)
    raise InvalidInput(f"{text!r} is not a scope", hint=f"it is {FORMS}")


def selected(platform: Platform, scope: Scope) -> frozenset[str]:
    """The managed nodes in the scope. Raises `InvalidInput` if the name is unknown or none of its nodes is managed."""
    if scope.is_whole:
        return platform.subset
    if scope.extent is Extent.STACK:
        stacks = {stack.name: frozenset(stack.applications) for stack in platform.stacks}
        return _within(platform, scope, _found("stack", scope.name, stacks))
    applications = {name: frozenset({name}) for name in platform.applications}
    return _within(platform, scope, _found("application", scope.name, applications))


def _found(what: str, name: str, names: Mapping[str, frozenset[str]]) -> frozenset[str]:
    if name not in names:
        raise InvalidInput(f"there is no {what} {name}", hint=did_you_mean(name, names))
    return names[name]


def _within(platform: Platform, scope: Scope, names: frozenset[str]) -> frozenset[str]:
    if names and not names & platform.subset:
        raise InvalidInput(
            f"{scope} is outside the part that the platform file selects", hint="see `only` in that file"
        )
    return names & platform.subset
