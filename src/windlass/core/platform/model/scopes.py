"""The scope of a command: `platform`, `stack:NAME` or `app:NAME`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from windlass.core.platform.model.suggestions import did_you_mean
from windlass.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from windlass.core.platform.model.applications import Platform

SCOPE_FORMS = "platform, stack:NAME or app:NAME"


class ScopeKind(StrEnum):
    PLATFORM = "platform"
    STACK = "stack"
    APP = "app"


@dataclass(frozen=True, slots=True)
class Scope:
    kind: ScopeKind = ScopeKind.PLATFORM
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.name else str(self.kind)

    @property
    def is_platform(self) -> bool:
        return self.kind is ScopeKind.PLATFORM


def parse_scope(text: str) -> Scope:
    kind, colon, name = text.partition(":")
    if text == ScopeKind.PLATFORM:
        return Scope()
    if kind in {ScopeKind.STACK, ScopeKind.APP} and colon and name:
        return Scope(ScopeKind(kind), name)
    raise InvalidInput(f"{text!r} is not a scope", hint=f"it is {SCOPE_FORMS}")


def selected_nodes(platform: Platform, scope: Scope) -> frozenset[str]:
    """The managed nodes in the scope. Raises `InvalidInput` if the name is unknown or none of its nodes is managed."""
    if scope.is_platform:
        return platform.managed_nodes
    if scope.kind is ScopeKind.STACK:
        stacks = {stack.name: frozenset(stack.applications) for stack in platform.stacks}
        return _managed_only(platform, scope, _lookup("stack", scope.name, stacks))
    applications = {name: frozenset({name}) for name in platform.applications}
    return _managed_only(platform, scope, _lookup("application", scope.name, applications))


def empty_selection_notice(platform: Platform, scope: Scope) -> str:
    """The notice of a run whose scope is a stack without applications; empty if the scope selects something."""
    return "" if selected_nodes(platform, scope) else f"nothing is selected: {scope} has no application"


def known_nodes(platform: Platform, names: Iterable[str]) -> frozenset[str]:
    """These names. Raises `InvalidInput` if one is not a node of the platform."""
    requested = frozenset(names)
    for name in sorted(requested - platform.applications.keys()):
        raise InvalidInput(f"there is no application {name!r}", hint=did_you_mean(name, platform.applications))
    return requested


def _lookup(what: str, name: str, names: Mapping[str, frozenset[str]]) -> frozenset[str]:
    if name not in names:
        raise InvalidInput(f"there is no {what} {name}", hint=did_you_mean(name, names))
    return names[name]


def _managed_only(platform: Platform, scope: Scope, names: frozenset[str]) -> frozenset[str]:
    if names and not names & platform.managed_nodes:
        raise InvalidInput(
            f"{scope} is outside the part that the platform file selects", hint="see `only` in that file"
        )
    return names & platform.managed_nodes
