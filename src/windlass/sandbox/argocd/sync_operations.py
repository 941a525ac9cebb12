"""Sync operations: from `.operation` through Running to completion, by phase and wave, with retries and termination."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from windlass.sandbox.apiserver.wire.api_status import Refusal
from windlass.sandbox.argocd import application_specs, comparison, projects
from windlass.sandbox.argocd.comparison import PHASES, Item
from windlass.sandbox.argocd.repositories import Broken
from windlass.sandbox.controllers import behaviours

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.argocd.application_specs import Pace
    from windlass.sandbox.clock import Sources
    from windlass.sandbox.controllers.controller import Place
    from windlass.sandbox.in_process_client import Caller

HISTORY = 10
DONE, ENDED = "successfully synced (all tasks run)", "successfully synced (no more tasks)"
UNSUCCESSFUL = "one or more synchronization tasks completed unsuccessfully"
TERMINATED = "Operation terminated"
BEFORE = "BeforeHookCreation"
INVALID = "one or more synchronization tasks are not valid"
FAILED = "one or more objects failed to apply, reason: "


class Controller(Protocol):
    """What a sync operation needs from the application controller."""

    pace: Pace
    applications_have_health: bool
    sources: Sources
    calls: Caller

    # Commits and manifests of the sources of an operation, else of the Application. Raises ComparisonFailure.
    def resolved(self, app: Body, holder: Body, revisions: list[str]) -> tuple[list[str], list[Body]]: ...
    def project_of(self, app: Body) -> Body | None: ...
    # Target manifests and tracked live objects of an Application, paired by key.
    def items(self, app: Body, wanted: list[Body]) -> list[Item]: ...
    # The resource with its kind, if the server did not serve it before, such as after its CRD was applied.
    def known(self, app: Body, item: Item) -> Item: ...
    def find(self, kind: str, name: str, namespace: str = "") -> Body | None: ...
    async def write(self, app: Body, patch: Body) -> None: ...


@dataclass(slots=True)
class Progress:
    """Progress of a sync operation. A crash loses it and the operation starts over, which is safe."""

    revisions: list[str]
    todo: list[Item]
    applied: list[tuple[Item, Body]] = field(default_factory=list)
    """Applied resources with their entries in `results`."""
    rows: list[Body] = field(default_factory=list)
    waiting: bool = False


class Operations:
    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._running: dict[Place, Progress] = {}

    def forget(self) -> None:
        self._running.clear()

    def is_held_up(self, place: Place) -> bool:
        """Whether the operation waits for an applied resource to become healthy or a hook to complete."""
        progress = self._running.get(place)
        return progress is not None and progress.waiting and bool(self._unfinished(progress))

    async def step(self, place: Place, app: Body) -> float | None:
        """Run the next step; return the seconds until the one after it, `None` at the end or while waiting."""
        state = app.get("status", {}).get("operationState") or {}
        if state.get("phase") == "Terminating":
            return await self._terminated(place, app)
        if state.get("phase") != "Running" or state.get("finishedAt"):
            return await self._begin(place, app, state)
        try:
            progress = self._running.get(place) or self._prepared(place, app, state)
        except Broken as broken:
            sync = state["operation"].get("sync", {})
            self._running[place] = Progress(application_specs.revisions_of(sync) or ["HEAD"], [])
            return await self._end(place, app, "Error", broken.told)
        return await self._go_on(place, app, progress)

    async def _go_on(self, place: Place, app: Body, progress: Progress) -> float | None:
        if any(row.get("status") == "SyncFailed" for row in progress.rows):
            return await self._end(place, app, "Failed", INVALID)
        if progress.waiting:
            self._note(progress)
            if left := self._unfinished(progress):
                await self._show(app, progress, _awaited(left))
                return None
        if any(row["hookPhase"] == "Failed" for _, row in progress.applied):
            return await self._end(place, app, "Failed", UNSUCCESSFUL)
        if not progress.todo:
            return await self._end(place, app, "Succeeded", ENDED if progress.waiting else DONE)
        return await self._next_stage(place, app, progress)

    async def _terminated(self, place: Place, app: Body) -> float | None:
        """Delete running hooks and fail the operation; applied resources stay."""
        for item, row in self._running[place].applied if place in self._running else ():
            if item.hook and self._outcome(item)[0] == "Running":
                await self._remove(item)
                row |= {"hookPhase": "Succeeded", "message": "Deleted"}
        return await self._end(place, app, "Failed", TERMINATED)

    async def _begin(self, place: Place, app: Body, state: Body) -> float:
        self._running.pop(place, None)
        retried = state.get("phase") == "Running"
        operation = state["operation"] if retried else {"retry": {}, **app["operation"]}
        change = comparison.merge_patch(state.get("operation") or {}, operation)
        new: Body = {"phase": "Running", "operation": change, "startedAt": self._controller.sources.timestamp()}
        if retried:
            new = {"phase": "Running"}
        elif state:
            new["retryCount"] = None
        await self._controller.write(app, {"status": {"operationState": {**new, "finishedAt": None}}})
        return self._controller.pace.sync

    def _prepared(self, place: Place, app: Body, state: Body) -> Progress:
        sync = state["operation"].get("sync") or {}
        revisions, wanted = self._controller.resolved(app, sync, application_specs.revisions_of(sync))
        chosen = sync.get("resources") or []
        items = self._controller.items(app, wanted)
        todo = [item for item in items if not chosen or any(_is_meant(row, item) for row in chosen)]
        hooks = PHASES if not chosen else ()
        todo = [item for item in todo if not item.hook or (item.wanted and item.hook in hooks)]
        progress = Progress(revisions, sorted(todo, key=lambda item: item.order))
        project, namespace = self._controller.project_of(app), self._missing_namespace(app, sync)
        made = [Item("", "v1", "Namespace", "namespaces", "", namespace)] if namespace else []
        for item in [*made, *progress.todo]:
            if why := projects.refusal_of(item, app, project) or _unknown(item, todo):
                row = {**item.head, "version": item.version, "syncPhase": "Sync"}
                progress.rows.append({**row, "status": "SyncFailed", "message": why})
        self._running[place] = progress
        return progress

    async def _next_stage(self, place: Place, app: Body, progress: Progress) -> float | None:
        """Apply the next phase and wave; return the seconds until the next step, `None` if the operation failed."""
        operation = app["status"]["operationState"]["operation"]
        if namespace := self._missing_namespace(app, operation["sync"]):
            await self._create_namespace(app, progress, namespace)
            return self._controller.pace.finish
        stage = progress.todo[0].stage
        now = [item for item in progress.todo if item.stage == stage]
        if await self._old_hooks_removed(app, progress, now):
            return self._controller.pace.finish
        prune = bool(operation["sync"].get("prune"))
        rows = [await self._carried_out(app, item, prune=prune) for item in now]
        progress.rows += rows  # only after all: an interrupted wave is applied again
        progress.applied += zip((self._controller.known(app, item) for item in now), rows, strict=True)
        progress.todo = [item for item in progress.todo if item.stage != stage]
        why = [row["message"] for row in progress.rows if row.get("status") == "SyncFailed"]
        if why:
            return await self._end(place, app, "Failed", FAILED + ",".join(dict.fromkeys(why)))
        left = [*(item for item in now if item.hook), *progress.todo]
        if not left:
            progress.waiting = False
            return self._controller.pace.finish
        progress.waiting = True
        await self._show(app, progress, _awaited(left))
        return self._controller.pace.finish if self._unfinished(progress) else self._controller.pace.wave

    async def _old_hooks_removed(self, app: Body, progress: Progress, now: list[Item]) -> bool:
        """Delete hooks left over from an earlier operation; return whether there were any."""
        policies = [(item, item.notes.get(comparison.HOOK_POLICY) or BEFORE) for item in now if item.hook]
        old = [item for item, policy in policies if BEFORE in policy]
        old = [item for item in old if self._controller.find(item.kind_id, item.name, item.namespace)]
        for item in old:
            await self._remove(item)
        if old:
            await self._show(app, progress, _awaited(old, "deletion of"))
        return bool(old)

    def _outcome(self, item: Item) -> tuple[str, str]:
        """`Running`, `Succeeded` or `Failed`, and the message."""
        live = self._controller.find(item.kind_id, item.name, item.namespace)
        health = replace(item, live=live).health(applications=self._controller.applications_have_health)
        if health is None:
            return "Succeeded", f"{item.name} created" if item.hook else ""
        words = {"Healthy": "Succeeded", "Degraded": "Failed", "Unknown": "Failed" if item.hook else "Running"}
        return words.get(health[0], "Running"), health[1]

    def _unfinished(self, progress: Progress) -> list[Item]:
        return [item for item, _ in progress.applied if item.wanted and self._outcome(item)[0] == "Running"]

    def _note(self, progress: Progress) -> None:
        """Update the results with the health of the applied resources."""
        for item, row in progress.applied:
            if item.wanted:
                outcome, message = self._outcome(item)
                row |= {"hookPhase": outcome, **({"message": message} if message else {})}
                if item.hook:
                    row.pop("status", None)

    def _missing_namespace(self, app: Body, sync: Body) -> str:
        """The namespace to create first; empty if it exists or `CreateNamespace=true` is not set."""
        name = str(app["spec"]["destination"].get("namespace", ""))
        asked = "CreateNamespace=true" in (sync.get("syncOptions") or ())
        return name if asked and name and self._controller.find("namespaces", name) is None else ""

    async def _create_namespace(self, app: Body, progress: Progress, name: str) -> None:
        await self._controller.calls.create("namespaces", {"metadata": {"name": name}})
        row = {"group": "", "version": "v1", "kind": "Namespace", "namespace": "", "name": name}
        told = {"status": "Synced", "message": f"namespace/{name} created", "hookPhase": "Running"}
        progress.rows.append({**row, **told, "syncPhase": "PreSync"})
        await self._show(app, progress, f"waiting for healthy state of /Namespace/{name}")

    async def _show(self, app: Body, progress: Progress, message: str) -> None:
        shown = {"message": message, "syncResult": self._result(app, progress)}
        await self._controller.write(app, {"status": {"operationState": shown}})

    def _result(self, app: Body, progress: Progress) -> Body:
        sync = app["status"]["operationState"]["operation"].get("sync") or {}
        sources = application_specs.sources_of(sync) or application_specs.sources_of(app["spec"])
        named = application_specs.named(app["spec"], "source", sources) | application_specs.named(
            app["spec"], "revision", progress.revisions
        )
        return {**({"resources": progress.rows} if progress.rows else {}), **named}

    async def _carried_out(self, app: Body, item: Item, *, prune: bool) -> Body:
        row = {**item.head, "version": item.version, "status": "Synced", "hookPhase": "Running"}
        row |= {"syncPhase": item.hook or "Sync", **({"hookType": item.hook} if item.hook else {})}
        if item.images:
            row["images"] = item.images
        try:
            if item.wanted is None:
                status, message = await self._pruned(item, prune=prune)
                return {**row, "status": status, "message": message, "hookPhase": "Succeeded"}
            return {**row, "message": await self._applied(self._controller.known(app, item))}
        except Refusal as refusal:
            return {**row, "status": "SyncFailed", "message": str(refusal), "hookPhase": "Failed"}

    async def _pruned(self, item: Item, *, prune: bool) -> tuple[str, str]:
        if not prune:
            return "PruneSkipped", "ignored (requires pruning)"
        await self._remove(item)
        return "Pruned", "pruned"

    async def _remove(self, item: Item) -> None:
        try:
            await self._controller.calls.delete(item.kind_id, item.name, item.namespace)
        except Refusal as refusal:
            if refusal.code != 404:
                raise

    async def _applied(self, item: Item) -> str:
        before = await self._controller.calls.find(item.kind_id, item.name, item.namespace)
        after = await self._controller.calls.apply(item.kind_id, item.wanted or {})
        kind = f"{item.kind.lower()}{'.' if item.group else ''}{item.group}"
        versions = [body and body["metadata"]["resourceVersion"] for body in (before, after)]
        how = "created" if before is None else "unchanged" if versions[0] == versions[1] else "configured"
        return f"{kind}/{item.name} {how}"

    async def _end(self, place: Place, app: Body, phase: str, message: str) -> float | None:
        now, state = self._controller.sources.timestamp(), app["status"]["operationState"]
        for item, row in self._running[place].applied if place in self._running else ():
            if item.hook and f"Hook{row['hookPhase']}" in item.notes.get(comparison.HOOK_POLICY, ""):
                await self._remove(item)
        progress = self._running.pop(place, None)
        retry, count = state["operation"].get("retry") or {}, state.get("retryCount", 0)
        result: Body = {"syncResult": self._result(app, progress)} if progress else {}
        if phase in {"Failed", "Error"} and message != TERMINATED and count < retry.get("limit", 0):
            wait = _backoff(retry.get("backoff") or {}, count)
            when = self._controller.sources.now() + timedelta(seconds=wait)
            told = f"{message}. Retrying attempt #{count + 1} at {when.strftime('%-I:%M%p')}."
            new = {**result, "phase": "Running", "message": told, "retryCount": count + 1, "finishedAt": now}
            await self._controller.write(app, {"status": {"operationState": new}})
            return wait
        if phase == "Succeeded" and progress and not (state["operation"].get("sync") or {}).get("resources"):
            await self._controller.write(app, {"status": {"history": self._history(app, progress, now)}})
        told = f"{message} (retried {count} times)." if count and phase != "Succeeded" else message
        new = {**result, "phase": phase, "message": told, "finishedAt": now}
        await self._controller.write(app, {"operation": None, "status": {"operationState": new}})
        return None

    def _history(self, app: Body, progress: Progress, now: str) -> list[Body]:
        history = app["status"].get("history") or []
        state = app["status"]["operationState"]
        named = {name: value for name, value in self._result(app, progress).items() if name != "resources"}
        row = {"id": history[-1]["id"] + 1 if history else 0, "deployStartedAt": state["startedAt"], "deployedAt": now}
        row["initiatedBy"] = state["operation"].get("initiatedBy") or {}
        return [*history, {**row, **named}][-HISTORY:]


def _unknown(item: Item, todo: list[Item]) -> str:
    """Error message for a kind the server does not know; empty if it does, or if this operation applies its CRD."""
    if item.kind_id or item.wanted is None:
        return ""
    brought = [other.wanted["spec"] for other in todo if other.kind == "CustomResourceDefinition" and other.wanted]
    if any((spec["group"], spec["names"]["kind"]) == (item.group, item.kind) for spec in brought):
        return ""
    what = f"{item.group}/{item.kind} for requested resource {item.namespace}/{item.name}"
    hint = f'Make sure the "{item.kind}" CRD is installed on the destination cluster.'
    return f"The Kubernetes API could not find {what}. {hint}"


def _awaited(left: list[Item], what: str = "") -> str:
    """Message of an operation that waits for these resources."""
    kinds = ("completion of hook", "hooks") if left[0].hook else ("healthy state of", "resources")
    more = f" and {len(left) - 1} more {kinds[1]}" if len(left) > 1 else ""
    return f"waiting for {what or kinds[0]} {left[0].group}/{left[0].kind}/{left[0].name}{more}"


def _is_meant(row: Body, item: Item) -> bool:
    names = (row.get("group", ""), row["kind"], row["name"])
    return names == (item.group, item.kind, item.name) and row.get("namespace") in {None, "", item.namespace}


def _backoff(given: Body, count: int) -> float:
    first = behaviours.seconds(given.get("duration", "5s"))
    longest = behaviours.seconds(given.get("maxDuration", "3m"))
    return min(longest, first * float(given.get("factor", 2)) ** count)
