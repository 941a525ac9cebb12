"""Builds a `Platform` from platform files and the environment file, or lists every problem in them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from windlass.core.platform.model.applications import (
    ApplicationNode,
    ApplicationRef,
    Barrier,
    NodeTiming,
    Platform,
    ResourceRef,
    Retries,
    Stack,
    stack_dependencies,
)
from windlass.core.platform.model.graphs import Cycle, Graph, graph_problems
from windlass.core.platform.model.suggestions import did_you_mean
from windlass.settings.overlays import PlatformLayers
from windlass.settings.platform_files import PlatformFile, Profile
from windlass.settings.problems import SettingsProblem
from windlass.settings.yaml_positions import ParsedFile, parse_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from windlass.settings.environment_files import EnvironmentFile
    from windlass.settings.overlays import Locations, NodeLayer

REFERENCE_SOURCE = "reference platform"
DEFAULT_PROFILE = "simple"


@dataclass(frozen=True, slots=True)
class PlatformDefinition:
    platform: Platform
    locations: Mapping[str, str]
    """Location in a file, by node."""
    edge_locations: Mapping[tuple[str, str], str]
    """Location by node and dependency, for the dependencies in the node's own `dependsOn`."""
    without_profile: tuple[str, ...]
    added_nodes: tuple[str, ...]
    """Nodes that a file which extends the reference platform adds to it."""
    explicit_dependencies: frozenset[str]
    """Nodes with a `dependsOn` of their own, even an empty one; annotations of their Applications are ignored."""


@cache
def reference_platform() -> ParsedFile[PlatformFile]:
    content = resources.files("windlass.settings").joinpath("reference.yaml").read_bytes()
    parsed_file = parse_file(content, REFERENCE_SOURCE, PlatformFile)
    assert isinstance(parsed_file, ParsedFile), parsed_file
    return parsed_file


@cache
def reference_names() -> frozenset[str]:
    stacks = reference_platform().model.spec.stacks
    return frozenset(entry.name for stack in stacks for entry in stack.applications or [])


def assemble_platform(
    document: ParsedFile[PlatformFile] | None, environment: EnvironmentFile | None = None
) -> PlatformDefinition | list[SettingsProblem]:
    """Build the platform of a file; without one, the reference platform. Returns all problems if there are any."""
    file = document or reference_platform()
    layers = PlatformLayers()
    if document is not None and document.model.spec.extends:
        layers.add(reference_platform())
    layers.add(file)
    stacks = _stacks(layers)
    stack_problems = _graph_problems({name: stack.dependencies for name, stack in layers.stacks.items()}, "stack ")
    dependencies = _node_dependencies(layers, () if stack_problems else stacks)
    problems = [
        *layers.problems,
        *stack_problems,
        *_node_problems(layers, file),
        *_graph_problems(dependencies),
        *_subset_problems(layers, file),
    ]
    if problems:
        return problems
    definition = _build_definition(layers, stacks, Graph.build(dependencies), file, environment)
    is_complete = bool(definition.platform.managed_nodes) or bool(file.problems)  # an unknown field may be meant for it
    return definition if is_complete else [_empty_problem(layers, file)]


def _empty_problem(layers: PlatformLayers, file: ParsedFile[PlatformFile]) -> SettingsProblem:
    """A platform without applications is a file that was not finished: a deploy of it would succeed and do nothing."""
    if layers.nodes:
        location = file.positions.location(("spec", "only"))
        return SettingsProblem(location, "`only` selects no application", "name stacks or applications in it")
    location = file.positions.location(("spec",))
    return SettingsProblem(location, "this platform has no application", "list them under spec.stacks")


def _graph_problems(dependencies: Mapping[str, Locations], what: str = "") -> list[SettingsProblem]:
    problems = []
    for problem in graph_problems(dependencies):
        name, dependency = problem.path[:2] if isinstance(problem, Cycle) else (problem.name, problem.dependency)
        problems.append(SettingsProblem(dependencies[name][dependency], f"{what}{problem}", problem.hint))
    return problems


def _node_problems(layers: PlatformLayers, file: ParsedFile[PlatformFile]) -> list[SettingsProblem]:
    known = reference_platform().model.spec.profiles.keys() | file.model.spec.profiles.keys()
    problems = []
    targets: dict[object, str] = {}
    for node in layers.nodes.values():
        profile = node.fields.get("profile", DEFAULT_PROFILE)
        if profile not in known:
            what = f"{node.name} has a profile that does not exist: {profile}"
            problems.append(SettingsProblem(node.location, what, did_you_mean(profile, known)))
        target = _target(node)
        if (other := targets.setdefault(target, node.name)) != node.name:
            kind = "Application" if isinstance(target, ApplicationRef) else "object"
            what = f"{other} and {node.name} both stand for {kind} {target}"
            problems.append(SettingsProblem(node.location, what, f"an {kind} can be one node only"))
    return problems


def _subset_problems(layers: PlatformLayers, file: ParsedFile[PlatformFile]) -> list[SettingsProblem]:
    only = file.model.spec.only
    if only is None:
        return []
    problems = []
    for kind, names, known in (
        ("stacks", only.stacks, layers.stacks.keys()),
        ("applications", only.applications, layers.nodes.keys()),
    ):
        for number, name in enumerate(names or []):
            if name not in known:
                location = file.positions.location(("spec", "only", kind, number))
                problems.append(
                    SettingsProblem(location, f"there is no {kind.removesuffix('s')} {name}", did_you_mean(name, known))
                )
    return problems


def _stacks(layers: PlatformLayers) -> tuple[Stack, ...]:
    members: dict[str, list[str]] = {name: [] for name in layers.stacks}
    for node in layers.nodes.values():
        members[node.stack].append(node.name)
    return tuple(
        Stack(name, tuple(members[name]), tuple(sorted(stack.dependencies))) for name, stack in layers.stacks.items()
    )


def _node_dependencies(layers: PlatformLayers, stacks: tuple[Stack, ...]) -> Mapping[str, Locations]:
    """Each node's own dependencies and, if stacks are given, those of its stack, with their locations."""
    by_stack = stack_dependencies(stacks)
    return {
        name: {**dict.fromkeys(by_stack.get(node.stack, ()), layers.stacks[node.stack].location), **node.dependencies}
        for name, node in layers.nodes.items()
    }


def _build_definition(
    layers: PlatformLayers,
    stacks: tuple[Stack, ...],
    graph: Graph,
    file: ParsedFile[PlatformFile],
    environment: EnvironmentFile | None,
) -> PlatformDefinition:
    profiles = _ProfileResolver(file.model.spec.profiles, environment)
    applications = {name: profiles.application(layers.nodes[name]) for name in graph.names}
    execution = file.model.spec.execution
    platform = Platform(
        name=file.model.metadata.name,
        stacks=stacks,
        applications=applications,
        graph=graph,
        managed_nodes=_subset(stacks, applications, file),
        max_parallel=execution.max_parallel,
        barrier=Barrier(execution.barrier),
    )
    locations = {name: node.location for name, node in layers.nodes.items()}
    without_profile = tuple(sorted(name for name, node in layers.nodes.items() if "profile" not in node.fields))
    edge_locations = {
        (name, other): location for name, node in layers.nodes.items() for other, location in node.dependencies.items()
    }
    explicit_dependencies = frozenset(name for name, node in layers.nodes.items() if node.has_explicit_dependencies)
    added = sorted(set(layers.nodes) - reference_names()) if file.model.spec.extends else ()
    return PlatformDefinition(platform, locations, edge_locations, without_profile, tuple(added), explicit_dependencies)


def _subset(stacks: tuple[Stack, ...], names: Iterable[str], file: ParsedFile[PlatformFile]) -> frozenset[str]:
    only = file.model.spec.only
    if only is None:
        return frozenset(names)
    chosen = set(only.applications or [])
    for stack in stacks:
        if stack.name in (only.stacks or []):
            chosen.update(stack.applications)
    return frozenset(chosen)


def _target(node: NodeLayer) -> ApplicationRef | ResourceRef:
    if resource := node.fields.get("resource"):
        return ResourceRef(resource.api_version, resource.kind, resource.name, resource.namespace)
    namespace, _, name = node.fields.get("application", node.name).rpartition("/")
    return ApplicationRef(name, namespace or None)


class _ProfileResolver:
    """Resolves each value from the first source that gives it.

    The order is: node, profile of the platform file, environment file, embedded profile.
    """

    def __init__(self, own: Mapping[str, Profile], environment: EnvironmentFile | None) -> None:
        self._file_profiles = own
        self._embedded_profiles = reference_platform().model.spec.profiles
        self._environment_values: dict[str, Any] = {}
        if environment is not None:
            self._environment_values |= environment.timeouts.model_dump(include={"sync", "health"}, exclude_none=True)
            self._environment_values |= environment.retries.model_dump(exclude_none=True)

    def application(self, node: NodeLayer) -> ApplicationNode:
        profile = node.fields.get("profile", DEFAULT_PROFILE)
        return ApplicationNode(
            name=node.name,
            stack=node.stack,
            target=_target(node),
            profile=profile,
            critical=node.fields.get("critical", False),
            timing=NodeTiming(**self._resolve_values(NodeTiming, node, profile)),
            retries=Retries(**self._resolve_values(Retries, node, profile)),
        )

    def _resolve_values(self, target: type, node: NodeLayer, profile: str) -> dict[str, Any]:
        file_values = self._file_profiles.get(profile, Profile()).model_dump(exclude_none=True)
        embedded_values = self._embedded_profiles.get(profile, self._embedded_profiles[DEFAULT_PROFILE]).model_dump(
            exclude_none=True
        )
        merged = embedded_values | self._environment_values | file_values | node.fields
        return {each.name: merged[each.name] for each in fields(target) if each.name in merged}
