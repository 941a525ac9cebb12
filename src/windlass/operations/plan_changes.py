"""What each sync of a plan would change. Reads only.

With a token of Argo CD, from the manifests that Argo CD renders at the planned revision, and its comparison with the
live objects. Without one, from what the status of the Application says.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from windlass.argo.argocd_server import ArgoCdServer, NoArgoCdServer, NotRendered, token_problem
from windlass.argo.cd import root_application
from windlass.argo.cd.application_resources import out_of_sync_resources
from windlass.argo.cd.applications import APPLICATIONS, Application
from windlass.core.platform.model.applications import ApplicationRef
from windlass.core.platform.planning import object_changes
from windlass.core.platform.planning.object_changes import (
    ApplicationChange,
    ChangedObject,
    DesiredObject,
    Effect,
    ObjectEffect,
    RenderedApplication,
)
from windlass.core.platform.planning.plans import Step, Verb

if TYPE_CHECKING:
    from collections.abc import Collection

    from windlass.argo.cd.applications import ObjectKey
    from windlass.core.platform.model.snapshots import ParentApplication
    from windlass.operations.observation import ApplicationsByKey, ObservedCluster
    from windlass.operations.planner import PlannedRun

MAX_CONCURRENT = 4  # Applications that Argo CD renders at once
MAX_SECONDS = 300.0  # for all Applications together
MAX_VALUE_LENGTH = 160  # characters of a value that are shown
CHILD_KIND = f"{APPLICATIONS.group}/{APPLICATIONS.kind}"
ONLY_COMPARISON = (
    "without a token of Argo CD (/secrets/argocd-token or ARGOCD_AUTH_TOKEN_PATH), only the objects are known that "
    "Argo CD's own comparison names, and none at a revision that it has not compared"
)
LATER = "known only after {} is updated"


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """How much a plan tells about changes."""

    token: str | None = field(default=None, repr=False)
    """Of Argo CD; `None` if none is given."""
    shows_fields: bool = False


@dataclass(frozen=True, slots=True)
class PlannedChanges:
    changes: tuple[ApplicationChange, ...] = ()
    notices: tuple[str, ...] = ()


async def find_changes(
    cluster: ObservedCluster, planned: PlannedRun, applications: ApplicationsByKey, request: ChangeRequest
) -> PlannedChanges:
    """What the syncs of the plan change. An Application of which that is not known is a line, not an error."""
    steps = [step for step in planned.plan.steps if step.verb is Verb.SYNC]
    steps += _steps_after_root(cluster, planned, applications)
    if not steps:
        return PlannedChanges()
    problem, server = "" if request.token is None else token_problem(request.token), None
    if request.token is not None and not problem:
        server = ArgoCdServer(cluster.reader, cluster.argocd_namespace, request.token)
    finder = _ChangeFinder(cluster, planned, applications, server)
    found = await finder.find(steps)
    if not request.shows_fields:
        found = tuple(_without_fields(change) for change in found)
    if problem:
        return PlannedChanges(found, (f"the token of Argo CD is not used: {problem}", ONLY_COMPARISON))
    notices = [ONLY_COMPARISON] if server is None and _is_incomplete(found, shows_fields=request.shows_fields) else []
    return PlannedChanges(found, (*notices, *filter(None, [finder.failure])))


def _steps_after_root(cluster: ObservedCluster, planned: PlannedRun, applications: ApplicationsByKey) -> list[Step]:
    """The nodes that a plan does not sync yet, because only the root that is written first changes their definition."""
    root = (cluster.argocd_namespace, root_application.NAME)
    if planned.root_manifest is None or root not in applications:
        return []
    waiting = [step.name for step in planned.plan.steps if step.verb is Verb.AWAIT]
    parents, states = planned.snapshot.parents, planned.snapshot.states
    names = [name for name in sorted((*planned.plan.unchanged, *waiting)) if name in parents and name in states]
    children = [name for name in names if (parents[name].namespace, parents[name].name) == root]
    return [Step(name, Verb.SYNC, planned.root_change, ()) for name in children]


def _is_incomplete(changes: Collection[ApplicationChange], *, shows_fields: bool) -> bool:
    return shows_fields or any(change.effect is Effect.UNKNOWN for change in changes)


def _without_fields(change: ApplicationChange) -> ApplicationChange:
    objects = tuple(replace(each, fields=(), is_truncated=False) for each in change.objects)
    return replace(change, objects=objects)


@dataclass(slots=True)
class _ChangeFinder:
    cluster: ObservedCluster
    planned: PlannedRun
    applications: ApplicationsByKey
    server: ArgoCdServer | None
    failure: str = ""
    """Why Argo CD's API could not be used; empty if it could."""
    _children: dict[str, dict[ObjectKey, DesiredObject] | NotRendered] = field(default_factory=dict)
    """By parent: the Applications that it defines."""
    _found: dict[str, ApplicationChange] = field(default_factory=dict)
    _undisturbed: set[str] = field(default_factory=set)
    """Nodes whose definition stays as it is although the root is written; they are not synced."""

    async def find(self, steps: list[Step]) -> tuple[ApplicationChange, ...]:
        try:
            async with asyncio.timeout(MAX_SECONDS):
                await self._render_all(steps)
        except TimeoutError:
            self.failure = self.failure or f"Argo CD did not render all applications within {MAX_SECONDS:g} s"
        except NoArgoCdServer as error:
            self.failure = f"{error.what}; {error.hint}" if error.hint else error.what
        changes = (self._found.get(step.name) or self._known_change(step) for step in steps)
        return tuple(change for change in changes if change.name not in self._undisturbed)

    async def _render_all(self, steps: list[Step]) -> None:
        if self.server is None:
            return
        for step in steps:
            if parent := self._defining_parent(step):
                await self._read_children(self.server, parent)
        limit = asyncio.Semaphore(MAX_CONCURRENT)

        async def render(step: Step, server: ArgoCdServer) -> None:
            async with limit:
                if not self.failure:
                    await self._render_step(step, server)

        async with asyncio.TaskGroup() as group:
            for step in steps:
                group.create_task(render(step, self.server))

    async def _render_step(self, step: Step, server: ArgoCdServer) -> None:
        if self._application(step) is None or step.name in self.planned.plan.outdated_parents:
            return
        try:
            if self._stays(step):
                self._undisturbed.add(step.name)
            else:
                self._found[step.name] = await self._rendered_change(step, server)
        except NotRendered as error:
            self._found[step.name] = ApplicationChange(step.name, Effect.UNKNOWN, error.what)
        except RecursionError:
            self._found[step.name] = ApplicationChange(step.name, Effect.UNKNOWN, "its objects are nested too deeply")
        except NoArgoCdServer as error:
            self.failure = f"{error.what}; {error.hint}" if error.hint else error.what

    def _application(self, step: Step) -> Application | None:
        return self.applications.get(self._key(step.name))

    def _key(self, name: str) -> ObjectKey:
        target = self.planned.platform.applications[name].target
        assert isinstance(target, ApplicationRef)
        return target.key(self.cluster.argocd_namespace)

    def _defining_parent(self, step: Step) -> ParentApplication | None:
        """The Application that changes the definition of the node before its sync; `None` if none does."""
        parent = self.planned.snapshot.parents.get(step.name)
        if parent is None or self._application(step) is None or step.name in self.planned.plan.outdated_parents:
            return None
        return parent if parent.updates_child or self._is_rewritten(parent) else None

    def _is_rewritten(self, parent: ParentApplication) -> bool:
        """Whether the run writes this Application first: it is the root, and another one is wanted."""
        root = (self.cluster.argocd_namespace, root_application.NAME)
        return self.planned.root_manifest is not None and (parent.namespace, parent.name) == root

    async def _read_children(self, server: ArgoCdServer, parent: ParentApplication) -> None:
        """Read what the parent makes of its children at the revisions that it will have."""
        if str(parent) in self._children:
            return
        key = (parent.namespace, parent.name)
        try:
            if parent.kind != APPLICATIONS.kind or key not in self.applications:
                raise NotRendered(LATER.format(parent))
            revisions = self._written_root_revision(key) if self._is_rewritten(parent) else parent.revisions
            rendered = await self._render(server, key, revisions)
        except NotRendered as error:
            self._children[str(parent)] = error
            return
        self._children[str(parent)] = {
            each.key[1:]: each for each in object_changes.desired_objects(rendered) if each.key[0] == CHILD_KIND
        }

    def _written_root_revision(self, key: ObjectKey) -> tuple[str, ...]:
        """The revision of the root that is written. Argo CD cannot render it if more of its source changes."""
        spec, manifest = self.applications[key].spec, self.planned.root_manifest
        live = (spec.source if spec else None) or {}
        wanted = manifest["spec"]["source"] if manifest else {}
        others = ({k: v for k, v in each.items() if k != "targetRevision" and v} for each in (live, wanted))
        if next(others) != next(others):
            raise NotRendered(LATER.format("/".join(key)))
        return (str(wanted["targetRevision"]),)

    async def _render(self, server: ArgoCdServer, key: ObjectKey, revisions: tuple[str, ...]) -> RenderedApplication:
        application = self.applications[key]
        compared = application.state.revisions
        if not compared or not revisions:
            raise NotRendered("which revision it would get is not known")
        destination = application.spec.destination if application.spec else None
        objects = await server.compared_objects(key)
        planned = await server.manifests(key, revisions)
        current = planned if revisions == compared else await server.manifests(key, compared)
        return RenderedApplication(current, planned, objects, (destination and destination.namespace) or "")

    async def _rendered_change(self, step: Step, server: ArgoCdServer) -> ApplicationChange:
        key, revisions, definition = self._key(step.name), step.revisions, None
        if parent := self._defining_parent(step):
            child = self._child(parent, key)
            revisions = _pinned_revisions(child.desired)
            definition = self._definition_change(child)
            if definition and object_changes.changes_sources(definition.fields):
                detail = f"its sources change: which of its objects change is {LATER.format('its definition')}"
                return ApplicationChange(step.name, Effect.CHANGES, detail, (definition,))
        rendered = await self._render(server, key, revisions)
        nodes = {self._key(name) for name in self.planned.platform.applications if self._is_application(name)}
        desired = (
            each
            for each in object_changes.desired_objects(rendered)
            if each.key[0] != CHILD_KIND or each.key[1:] not in nodes  # nodes have steps of their own
        )
        changes, is_truncated = object_changes.limited_objects(object_changes.object_changes(desired, self._shorten))
        objects = (*filter(None, [definition]), *changes)
        moves = revisions != self.applications[key].state.revisions
        effect = Effect.CHANGES if objects else Effect.PIN if moves else Effect.NONE
        return ApplicationChange(step.name, effect, _secrets_note(rendered), objects, is_truncated)

    def _stays(self, step: Step) -> bool:
        """Whether a node that the plan does not sync yet keeps its definition when the root is written."""
        parent = self._defining_parent(step)
        if step.revisions or parent is None:
            return False
        child = self._child(parent, self._key(step.name))
        return bool(child.desired == child.live)

    def _is_application(self, name: str) -> bool:
        return isinstance(self.planned.platform.applications[name].target, ApplicationRef)

    def _child(self, parent: ParentApplication, key: ObjectKey) -> DesiredObject:
        children = self._children[str(parent)]
        if isinstance(children, NotRendered):
            raise children
        child = children.get(key)
        if child is None or child.effect is not ObjectEffect.UPDATE:
            raise NotRendered(LATER.format(parent))
        return child

    def _definition_change(self, child: DesiredObject) -> ChangedObject | None:
        """The change of the Application itself, without the revisions that it is pinned to."""
        for change in object_changes.object_changes([child], self._shorten):
            if fields := tuple(each for each in change.fields if not object_changes.is_pin(each)):
                return replace(change, fields=fields)
        return None

    def _shorten(self, text: str) -> str:
        return self.cluster.reader.redactor.message(text, MAX_VALUE_LENGTH, 0)

    def _known_change(self, step: Step) -> ApplicationChange:
        """What is known without Argo CD's API."""
        application, plan = self._application(step), self.planned.plan
        if application is None:
            return ApplicationChange(step.name, Effect.CREATES)
        if step.name in plan.outdated_parents:
            detail = LATER.format(plan.outdated_parents[step.name])
            return ApplicationChange(step.name, Effect.UNKNOWN, detail)
        state = application.state
        is_compared = state.revisions == step.revisions and not state.comparison_problem
        parent = self._defining_parent(step)
        if parent and self._is_rewritten(parent):
            return ApplicationChange(step.name, Effect.UNKNOWN, LATER.format(parent))
        if parent or not is_compared:
            return ApplicationChange(step.name, Effect.UNKNOWN, "Argo CD has not compared it at the planned revision")
        rows = out_of_sync_resources(application, exclude=())
        objects, is_truncated = object_changes.limited_objects(map(_out_of_sync, rows))
        effect = Effect.CHANGES if objects else Effect.NONE
        return ApplicationChange(step.name, effect, "", objects, is_truncated)


def _pinned_revisions(application: Any) -> tuple[str, ...]:
    spec = application.get("spec") if isinstance(application, dict) else None
    fields = spec if isinstance(spec, dict) else {}
    sources = fields.get("sources") or [fields.get("source")]
    if not isinstance(sources, list) or not all(isinstance(each, dict) for each in sources):
        raise NotRendered("its definition has no sources")
    return tuple(str(each.get("targetRevision") or "HEAD") for each in sources)


def _secrets_note(rendered: RenderedApplication) -> str:
    count = sum(object_changes.object_kind(each) == "Secret" for each in rendered.planned)
    return f"values of {count} Secret(s) are not compared: Argo CD hides them" if count else ""


def _out_of_sync(row: dict[str, Any]) -> ChangedObject:
    kind = object_changes.object_kind({"apiVersion": f"{row.get('group') or ''}/", "kind": row.get("kind")})
    return ChangedObject(kind, row.get("namespace") or "", row.get("name") or "", ObjectEffect.OUT_OF_SYNC)
