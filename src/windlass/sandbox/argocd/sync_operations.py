"""Sync operations: from `.operation` through Running to completion, by phase and wave, with retries and termination."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from windlass.sandbox.apiserver.wire.api_status import StatusError
from windlass.sandbox.argocd import application_specs, comparison, projects
from windlass.sandbox.argocd.comparison import SYNC_PHASES, ComparedResource
from windlass.sandbox.argocd.repositories import ComparisonFailure
from windlass.sandbox.controllers import behaviours

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.argocd.application_specs import ControllerDelays
    from windlass.sandbox.clock import SandboxClock
    from windlass.sandbox.controllers.controller import StoreKey
    from windlass.sandbox.in_process_client import InProcessClient

MAX_HISTORY = 10
ALL_TASKS_RUN, NO_MORE_TASKS = "successfully synced (all tasks run)", "successfully synced (no more tasks)"
TASKS_UNSUCCESSFUL = "one or more synchronization tasks completed unsuccessfully"
TERMINATED = "Operation terminated"
BEFORE_HOOK_CREATION = "BeforeHookCreation"
TASKS_INVALID = "one or more synchronization tasks are not valid"
APPLY_FAILED = "one or more objects failed to apply, reason: "


class OperationController(Protocol):
    """What a sync operation needs from the application controller."""

    delays: ControllerDelays
    applications_have_health: bool
    clock: SandboxClock
    client: InProcessClient

    # Commits and manifests of the sources of an operation, else of the Application. Raises ComparisonFailure.
    def resolve(self, app: Body, sync: Body, revisions: list[str]) -> tuple[list[str], list[Body]]: ...
    def find_project(self, app: Body) -> Body | None: ...
    # Target manifests and tracked live objects of an Application, paired by key.
    def resources(self, app: Body, targets: list[Body]) -> list[ComparedResource]: ...
    # The resource with its kind, if the server did not serve it before, such as after its CRD was applied.
    def resolve_kind(self, app: Body, item: ComparedResource) -> ComparedResource: ...
    def find(self, kind: str, name: str, namespace: str = "") -> Body | None: ...
    async def write(self, app: Body, patch: Body) -> None: ...


@dataclass(slots=True)
class SyncProgress:
    """Progress of a sync operation. A crash loses it and the operation starts over, which is safe."""

    revisions: list[str]
    pending: list[ComparedResource]
    applied: list[tuple[ComparedResource, Body]] = field(default_factory=list)
    """Applied resources with their entries in `results`."""
    results: list[Body] = field(default_factory=list)
    is_waiting: bool = False


class SyncOperations:
    def __init__(self, controller: OperationController) -> None:
        self._controller = controller
        self._running: dict[StoreKey, SyncProgress] = {}

    def reset(self) -> None:
        self._running.clear()

    def is_waiting(self, key: StoreKey) -> bool:
        """Whether the operation waits for an applied resource to become healthy or a hook to complete."""
        progress = self._running.get(key)
        return progress is not None and progress.is_waiting and bool(self._unfinished_tasks(progress))

    async def run_step(self, key: StoreKey, app: Body) -> float | None:
        """Run the next step; return the seconds until the one after it, `None` at the end or while waiting."""
        state = app.get("status", {}).get("operationState") or {}
        if state.get("phase") == "Terminating":
            return await self._terminate(key, app)
        if state.get("phase") != "Running" or state.get("finishedAt"):
            return await self._start(key, app, state)
        try:
            progress = self._running.get(key) or self._prepare(key, app, state)
        except ComparisonFailure as broken:
            sync = state["operation"].get("sync", {})
            self._running[key] = SyncProgress(application_specs.get_revisions(sync) or ["HEAD"], [])
            return await self._finish(key, app, "Error", broken.message)
        return await self._continue(key, app, progress)

    async def _continue(self, key: StoreKey, app: Body, progress: SyncProgress) -> float | None:
        if any(row.get("status") == "SyncFailed" for row in progress.results):
            return await self._finish(key, app, "Failed", TASKS_INVALID)
        if progress.is_waiting:
            self._update_results(progress)
            if unfinished := self._unfinished_tasks(progress):
                await self._write_progress(app, progress, _waiting_message(unfinished))
                return None
        if any(row["hookPhase"] == "Failed" for _, row in progress.applied):
            return await self._finish(key, app, "Failed", TASKS_UNSUCCESSFUL)
        if not progress.pending:
            return await self._finish(key, app, "Succeeded", NO_MORE_TASKS if progress.is_waiting else ALL_TASKS_RUN)
        return await self._apply_next_wave(key, app, progress)

    async def _terminate(self, key: StoreKey, app: Body) -> float | None:
        """Delete running hooks and fail the operation; applied resources stay."""
        for item, row in self._running[key].applied if key in self._running else ():
            if item.hook and self._task_outcome(item)[0] == "Running":
                await self._delete(item)
                row |= {"hookPhase": "Succeeded", "message": "Deleted"}
        return await self._finish(key, app, "Failed", TERMINATED)

    async def _start(self, key: StoreKey, app: Body, state: Body) -> float:
        self._running.pop(key, None)
        is_retry = state.get("phase") == "Running"
        operation = state["operation"] if is_retry else {"retry": {}, **app["operation"]}
        change = comparison.merge_patch(state.get("operation") or {}, operation)
        new_state: Body = {"phase": "Running", "operation": change, "startedAt": self._controller.clock.timestamp()}
        if is_retry:
            new_state = {"phase": "Running"}
        elif state:
            new_state["retryCount"] = None
        await self._controller.write(app, {"status": {"operationState": {**new_state, "finishedAt": None}}})
        return self._controller.delays.sync

    def _prepare(self, key: StoreKey, app: Body, state: Body) -> SyncProgress:
        sync = state["operation"].get("sync") or {}
        revisions, targets = self._controller.resolve(app, sync, application_specs.get_revisions(sync))
        selected = sync.get("resources") or []
        items = self._controller.resources(app, targets)
        pending = [item for item in items if not selected or any(_is_selected(row, item) for row in selected)]
        hooks = SYNC_PHASES if not selected else ()
        pending = [item for item in pending if not item.hook or (item.target and item.hook in hooks)]
        progress = SyncProgress(revisions, sorted(pending, key=lambda item: item.apply_order))
        project, namespace = self._controller.find_project(app), self._missing_namespace(app, sync)
        created = [ComparedResource("", "v1", "Namespace", "namespaces", "", namespace)] if namespace else []
        for item in [*created, *progress.pending]:
            if message := projects.refusal(item, app, project) or _unknown_kind_message(item, pending):
                row = {**item.reference, "version": item.version, "syncPhase": "Sync"}
                progress.results.append({**row, "status": "SyncFailed", "message": message})
        self._running[key] = progress
        return progress

    async def _apply_next_wave(self, key: StoreKey, app: Body, progress: SyncProgress) -> float | None:
        """Apply the next phase and wave; return the seconds until the next step, `None` if the operation failed."""
        operation = app["status"]["operationState"]["operation"]
        if namespace := self._missing_namespace(app, operation["sync"]):
            await self._create_namespace(app, progress, namespace)
            return self._controller.delays.finish
        phase_and_wave = progress.pending[0].phase_and_wave
        current = [item for item in progress.pending if item.phase_and_wave == phase_and_wave]
        if await self._delete_old_hooks(app, progress, current):
            return self._controller.delays.finish
        prune = bool(operation["sync"].get("prune"))
        results = [await self._run_task(app, item, prune=prune) for item in current]
        progress.results += results  # only after all: an interrupted wave is applied again
        progress.applied += zip((self._controller.resolve_kind(app, item) for item in current), results, strict=True)
        progress.pending = [item for item in progress.pending if item.phase_and_wave != phase_and_wave]
        errors = [row["message"] for row in progress.results if row.get("status") == "SyncFailed"]
        if errors:
            return await self._finish(key, app, "Failed", APPLY_FAILED + ",".join(dict.fromkeys(errors)))
        remaining = [*(item for item in current if item.hook), *progress.pending]
        if not remaining:
            progress.is_waiting = False
            return self._controller.delays.finish
        progress.is_waiting = True
        await self._write_progress(app, progress, _waiting_message(remaining))
        return self._controller.delays.finish if self._unfinished_tasks(progress) else self._controller.delays.wave

    async def _delete_old_hooks(self, app: Body, progress: SyncProgress, current: list[ComparedResource]) -> bool:
        """Delete hooks left over from an earlier operation; return whether there were any."""
        policies = [
            (item, item.annotations.get(comparison.HOOK_DELETE_POLICY) or BEFORE_HOOK_CREATION)
            for item in current
            if item.hook
        ]
        old = [item for item, policy in policies if BEFORE_HOOK_CREATION in policy]
        old = [item for item in old if self._controller.find(item.kind_id, item.name, item.namespace)]
        for item in old:
            await self._delete(item)
        if old:
            await self._write_progress(app, progress, _waiting_message(old, "deletion of"))
        return bool(old)

    def _task_outcome(self, item: ComparedResource) -> tuple[str, str]:
        """`Running`, `Succeeded` or `Failed`, and the message."""
        live = self._controller.find(item.kind_id, item.name, item.namespace)
        health = replace(item, live=live).health(applications=self._controller.applications_have_health)
        if health is None:
            return "Succeeded", f"{item.name} created" if item.hook else ""
        outcomes = {"Healthy": "Succeeded", "Degraded": "Failed", "Unknown": "Failed" if item.hook else "Running"}
        return outcomes.get(health[0], "Running"), health[1]

    def _unfinished_tasks(self, progress: SyncProgress) -> list[ComparedResource]:
        return [item for item, _ in progress.applied if item.target and self._task_outcome(item)[0] == "Running"]

    def _update_results(self, progress: SyncProgress) -> None:
        """Update the results with the health of the applied resources."""
        for item, row in progress.applied:
            if item.target:
                outcome, message = self._task_outcome(item)
                row |= {"hookPhase": outcome, **({"message": message} if message else {})}
                if item.hook:
                    row.pop("status", None)

    def _missing_namespace(self, app: Body, sync: Body) -> str:
        """The namespace to create first; empty if it exists or `CreateNamespace=true` is not set."""
        name = str(app["spec"]["destination"].get("namespace", ""))
        is_requested = "CreateNamespace=true" in (sync.get("syncOptions") or ())
        return name if is_requested and name and self._controller.find("namespaces", name) is None else ""

    async def _create_namespace(self, app: Body, progress: SyncProgress, name: str) -> None:
        await self._controller.client.create("namespaces", {"metadata": {"name": name}})
        row = {"group": "", "version": "v1", "kind": "Namespace", "namespace": "", "name": name}
        fields = {"status": "Synced", "message": f"namespace/{name} created", "hookPhase": "Running"}
        progress.results.append({**row, **fields, "syncPhase": "PreSync"})
        await self._write_progress(app, progress, f"waiting for healthy state of /Namespace/{name}")

    async def _write_progress(self, app: Body, progress: SyncProgress, message: str) -> None:
        state = {"message": message, "syncResult": self._sync_result(app, progress)}
        await self._controller.write(app, {"status": {"operationState": state}})

    def _sync_result(self, app: Body, progress: SyncProgress) -> Body:
        sync = app["status"]["operationState"]["operation"].get("sync") or {}
        sources = application_specs.get_sources(sync) or application_specs.get_sources(app["spec"])
        fields = application_specs.source_fields(app["spec"], "source", sources) | application_specs.source_fields(
            app["spec"], "revision", progress.revisions
        )
        return {**({"resources": progress.results} if progress.results else {}), **fields}

    async def _run_task(self, app: Body, item: ComparedResource, *, prune: bool) -> Body:
        row = {**item.reference, "version": item.version, "status": "Synced", "hookPhase": "Running"}
        row |= {"syncPhase": item.hook or "Sync", **({"hookType": item.hook} if item.hook else {})}
        if item.images:
            row["images"] = item.images
        try:
            if item.target is None:
                status, message = await self._prune(item, prune=prune)
                return {**row, "status": status, "message": message, "hookPhase": "Succeeded"}
            return {**row, "message": await self._apply(self._controller.resolve_kind(app, item))}
        except StatusError as refusal:
            return {**row, "status": "SyncFailed", "message": str(refusal), "hookPhase": "Failed"}

    async def _prune(self, item: ComparedResource, *, prune: bool) -> tuple[str, str]:
        if not prune:
            return "PruneSkipped", "ignored (requires pruning)"
        await self._delete(item)
        return "Pruned", "pruned"

    async def _delete(self, item: ComparedResource) -> None:
        try:
            await self._controller.client.delete(item.kind_id, item.name, item.namespace)
        except StatusError as refusal:
            if refusal.code != 404:
                raise

    async def _apply(self, item: ComparedResource) -> str:
        before = await self._controller.client.find(item.kind_id, item.name, item.namespace)
        after = await self._controller.client.apply(item.kind_id, item.target or {})
        kind = f"{item.kind.lower()}{'.' if item.group else ''}{item.group}"
        versions = [body and body["metadata"]["resourceVersion"] for body in (before, after)]
        result = "created" if before is None else "unchanged" if versions[0] == versions[1] else "configured"
        return f"{kind}/{item.name} {result}"

    async def _finish(self, key: StoreKey, app: Body, phase: str, message: str) -> float | None:
        now, state = self._controller.clock.timestamp(), app["status"]["operationState"]
        for item, row in self._running[key].applied if key in self._running else ():
            if item.hook and f"Hook{row['hookPhase']}" in item.annotations.get(comparison.HOOK_DELETE_POLICY, ""):
                await self._delete(item)
        progress = self._running.pop(key, None)
        retry, count = state["operation"].get("retry") or {}, state.get("retryCount", 0)
        result: Body = {"syncResult": self._sync_result(app, progress)} if progress else {}
        if phase in {"Failed", "Error"} and message != TERMINATED and count < retry.get("limit", 0):
            delay = _retry_delay(retry.get("backoff") or {}, count)
            when = self._controller.clock.now() + timedelta(seconds=delay)
            full_message = f"{message}. Retrying attempt #{count + 1} at {when.strftime('%-I:%M%p')}."
            new_state = {
                **result,
                "phase": "Running",
                "message": full_message,
                "retryCount": count + 1,
                "finishedAt": now,
            }
            await self._controller.write(app, {"status": {"operationState": new_state}})
            return delay
        if phase == "Succeeded" and progress and not (state["operation"].get("sync") or {}).get("resources"):
            await self._controller.write(app, {"status": {"history": self._history(app, progress, now)}})
        full_message = f"{message} (retried {count} times)." if count and phase != "Succeeded" else message
        new_state = {**result, "phase": phase, "message": full_message, "finishedAt": now}
        await self._controller.write(app, {"operation": None, "status": {"operationState": new_state}})
        return None

    def _history(self, app: Body, progress: SyncProgress, now: str) -> list[Body]:
        history = app["status"].get("history") or []
        state = app["status"]["operationState"]
        fields = {name: value for name, value in self._sync_result(app, progress).items() if name != "resources"}
        row = {"id": history[-1]["id"] + 1 if history else 0, "deployStartedAt": state["startedAt"], "deployedAt": now}
        row["initiatedBy"] = state["operation"].get("initiatedBy") or {}
        return [*history, {**row, **fields}][-MAX_HISTORY:]


def _unknown_kind_message(item: ComparedResource, pending: list[ComparedResource]) -> str:
    """Error message for a kind the server does not know; empty if it does, or if this operation applies its CRD."""
    if item.kind_id or item.target is None:
        return ""
    crd_specs = [other.target["spec"] for other in pending if other.kind == "CustomResourceDefinition" and other.target]
    if any((spec["group"], spec["names"]["kind"]) == (item.group, item.kind) for spec in crd_specs):
        return ""
    what = f"{item.group}/{item.kind} for requested resource {item.namespace}/{item.name}"
    hint = f'Make sure the "{item.kind}" CRD is installed on the destination cluster.'
    return f"The Kubernetes API could not find {what}. {hint}"


def _waiting_message(items: list[ComparedResource], what: str = "") -> str:
    """Message of an operation that waits for these resources."""
    kinds = ("completion of hook", "hooks") if items[0].hook else ("healthy state of", "resources")
    more = f" and {len(items) - 1} more {kinds[1]}" if len(items) > 1 else ""
    return f"waiting for {what or kinds[0]} {items[0].group}/{items[0].kind}/{items[0].name}{more}"


def _is_selected(row: Body, item: ComparedResource) -> bool:
    names = (row.get("group", ""), row["kind"], row["name"])
    return names == (item.group, item.kind, item.name) and row.get("namespace") in {None, "", item.namespace}


def _retry_delay(backoff: Body, count: int) -> float:
    first = behaviours.parse_duration(backoff.get("duration", "5s"))
    longest = behaviours.parse_duration(backoff.get("maxDuration", "3m"))
    return min(longest, first * float(backoff.get("factor", 2)) ** count)
