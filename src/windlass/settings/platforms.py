"""Builds a `Platform` from platform files and the environment file, or lists every problem in them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from windlass.core.platform.model.applications import (
    Application,
    ApplicationRef,
    Barrier,
    Patience,
    Platform,
    ResourceRef,
    Retries,
    Stack,
    stack_needs,
)
from windlass.core.platform.model.graphs import Cycle, Graph, problems_of
from windlass.core.platform.model.suggestions import did_you_mean
from windlass.settings.overlays import Layers
from windlass.settings.platform_files import PlatformFile, Profile
from windlass.settings.problems import Mistake
from windlass.settings.yaml_positions import Checked, checked

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from windlass.settings.environment_files import EnvironmentFile
    from windlass.settings.overlays import Node, Places

REFERENCE = "reference platform"
DEFAULT_PROFILE = "simple"


@dataclass(frozen=True, slots=True)
class Assembled:
    platform: Platform
    places: Mapping[str, str]
    """Location in a file, by node."""
    edge_places: Mapping[tuple[str, str], str]
    """Location by node and dependency, for the dependencies in the node's own `dependsOn`."""
    without_profile: tuple[str, ...]
    stated: frozenset[str]
    """Nodes with a `dependsOn` of their own, even an empty one; annotations of their Applications are ignored."""


@cache
def reference() -> Checked[PlatformFile]:
    content = resources.files("windlass.settings").joinpath("reference.yaml").read_bytes()
    found = checked(content, REFERENCE, PlatformFile)
    assert isinstance(found, Checked), found
    return found


def assembled(
    document: Checked[PlatformFile] | None, environment: EnvironmentFile | None = None
) -> Assembled | list[Mistake]:
    """Build the platform of a file; without one, the reference platform. Returns all problems if there are any."""
    file = document or reference()
    layers = Layers()
    if document is not None and document.model.spec.extends:
        layers.add(reference())
    layers.add(file)
    stacks = _stacks(layers)
    stack_mistakes = _graph_mistakes({name: stack.needs for name, stack in layers.stacks.items()}, "stack ")
    needs = _needs(layers, () if stack_mistakes else stacks)
    mistakes = [
        *layers.mistakes,
        *stack_mistakes,
        *_node_mistakes(layers, file),
        *_graph_mistakes(needs),
        *_subset_mistakes(layers, file),
    ]
    return mistakes or _assembled(layers, stacks, Graph.build(needs), file, environment)


def _graph_mistakes(needs: Mapping[str, Places], what: str = "") -> list[Mistake]:
    found = []
    for problem in problems_of(needs):
        name, dependency = problem.path[:2] if isinstance(problem, Cycle) else (problem.name, problem.dependency)
        found.append(Mistake(needs[name][dependency], f"{what}{problem}", problem.hint))
    return found


def _node_mistakes(layers: Layers, file: Checked[PlatformFile]) -> list[Mistake]:
    known = reference().model.spec.profiles.keys() | file.model.spec.profiles.keys()
    found = []
    targets: dict[object, str] = {}
    for node in layers.nodes.values():
        profile = node.fields.get("profile", DEFAULT_PROFILE)
        if profile not in known:
            what = f"{node.name} has a profile that does not exist: {profile}"
            found.append(Mistake(node.place, what, did_you_mean(profile, known)))
        target = _target(node)
        if (other := targets.setdefault(target, node.name)) != node.name:
            found.append(Mistake(node.place, f"{node.name} and {other} are both {target}", "name it once"))
    return found


def _subset_mistakes(layers: Layers, file: Checked[PlatformFile]) -> list[Mistake]:
    only = file.model.spec.only
    if only is None:
        return []
    found = []
    for kind, names, known in (
        ("stacks", only.stacks, layers.stacks.keys()),
        ("applications", only.applications, layers.nodes.keys()),
    ):
        for number, name in enumerate(names or []):
            if name not in known:
                place = file.marks.place(("spec", "only", kind, number))
                found.append(Mistake(place, f"there is no {kind.removesuffix('s')} {name}", did_you_mean(name, known)))
    return found


def _stacks(layers: Layers) -> tuple[Stack, ...]:
    members: dict[str, list[str]] = {name: [] for name in layers.stacks}
    for node in layers.nodes.values():
        members[node.stack].append(node.name)
    return tuple(Stack(name, tuple(members[name]), tuple(sorted(stack.needs))) for name, stack in layers.stacks.items())


def _needs(layers: Layers, stacks: tuple[Stack, ...]) -> Mapping[str, Places]:
    """Each node's own dependencies and, if stacks are given, those of its stack, with their locations."""
    by_stack = stack_needs(stacks)
    return {
        name: {**dict.fromkeys(by_stack.get(node.stack, ()), layers.stacks[node.stack].place), **node.needs}
        for name, node in layers.nodes.items()
    }


def _assembled(
    layers: Layers,
    stacks: tuple[Stack, ...],
    graph: Graph,
    file: Checked[PlatformFile],
    environment: EnvironmentFile | None,
) -> Assembled:
    profiles = _Profiles(file.model.spec.profiles, environment)
    applications = {name: profiles.application(layers.nodes[name]) for name in graph.names}
    execution = file.model.spec.execution
    platform = Platform(
        name=file.model.metadata.name,
        stacks=stacks,
        applications=applications,
        graph=graph,
        subset=_subset(stacks, applications, file),
        max_parallel=execution.max_parallel,
        barrier=Barrier(execution.barrier),
    )
    places = {name: node.place for name, node in layers.nodes.items()}
    bare = tuple(sorted(name for name, node in layers.nodes.items() if "profile" not in node.fields))
    edges = {(name, other): place for name, node in layers.nodes.items() for other, place in node.needs.items()}
    stated = frozenset(name for name, node in layers.nodes.items() if node.states_needs)
    return Assembled(platform, places, edges, bare, stated)


def _subset(stacks: tuple[Stack, ...], names: Iterable[str], file: Checked[PlatformFile]) -> frozenset[str]:
    only = file.model.spec.only
    if only is None:
        return frozenset(names)
    chosen = set(only.applications or [])
    for stack in stacks:
        if stack.name in (only.stacks or []):
            chosen.update(stack.applications)
    return frozenset(chosen)


def _target(node: Node) -> ApplicationRef | ResourceRef:
    if resource := node.fields.get("resource"):
        return ResourceRef(resource.api_version, resource.kind, resource.name, resource.namespace)
    namespace, _, name = node.fields.get("application", node.name).rpartition("/")
    return ApplicationRef(name, namespace or None)


class _Profiles:
    """Resolves each value from the first source that gives it.

    The order is: node, profile of the platform file, environment file, embedded profile.
    """

    def __init__(self, own: Mapping[str, Profile], environment: EnvironmentFile | None) -> None:
        self._own = own
        self._embedded = reference().model.spec.profiles
        self._environment: dict[str, Any] = {}
        if environment is not None:
            self._environment |= environment.timeouts.model_dump(include={"sync", "health"}, exclude_none=True)
            self._environment |= environment.retries.model_dump(exclude_none=True)

    def application(self, node: Node) -> Application:
        profile = node.fields.get("profile", DEFAULT_PROFILE)
        return Application(
            name=node.name,
            stack=node.stack,
            target=_target(node),
            profile=profile,
            critical=node.fields.get("critical", False),
            patience=Patience(**self._values(Patience, node, profile)),
            retries=Retries(**self._values(Retries, node, profile)),
        )

    def _values(self, into: type, node: Node, profile: str) -> dict[str, Any]:
        own = self._own.get(profile, Profile()).model_dump(exclude_none=True)
        embedded = self._embedded.get(profile, self._embedded[DEFAULT_PROFILE]).model_dump(exclude_none=True)
        layers = embedded | self._environment | own | node.fields
        return {each.name: layers[each.name] for each in fields(into) if each.name in layers}
