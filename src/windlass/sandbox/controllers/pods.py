"""Scheduler and kubelet: assigns pods to the node and simulates their containers."""

from __future__ import annotations

from datetime import timedelta
from math import inf
from typing import TYPE_CHECKING, ClassVar

from windlass.sandbox.apiserver.requests import MASTERS, UserInfo
from windlass.sandbox.clock import format_timestamp
from windlass.sandbox.controllers import behaviours, object_builders
from windlass.sandbox.controllers.controller import CACHE_LAG, SandboxController
from windlass.sandbox.controllers.programs import Programs

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from windlass.sandbox.apiserver.store import StoreChange
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.controllers.behaviours import Behaviour, BehaviourTable, ContainerState
    from windlass.sandbox.controllers.controller import StoreKey
    from windlass.sandbox.sandbox import Sandbox

NODE_NAME = "sandbox"
WAKE_MARGIN = (
    0.001  # seconds; clocks round to microseconds, so a timer could otherwise fire just before the state changes
)
CLAIMS = "persistentvolumeclaims"
DEFAULT_SCHEDULER = "default-scheduler"


class Pods(SandboxController):
    user = UserInfo(f"system:node:{NODE_NAME}", ("system:nodes", "system:authenticated", MASTERS))
    primary = "pods"
    watched: ClassVar[tuple[str, ...]] = (CLAIMS,)

    def __init__(self, sandbox: Sandbox, table: BehaviourTable, *, lag: float = CACHE_LAG) -> None:
        self.programs = Programs(sandbox)
        self._behaviours = table
        self._started_at: dict[str, datetime] = {}
        self._stop_requested_at: dict[str, datetime] = {}
        self._logged_runs: set[str] = set()
        self._ip_count = 0
        super().__init__(sandbox, lag=lag)

    def affected_keys(self, change: StoreChange) -> Iterable[StoreKey]:
        if change.new.kind_id == CLAIMS:
            return self._unscheduled_pods(change.new.namespace)
        return super().affected_keys(change)

    def _unscheduled_pods(self, namespace: str) -> Iterable[StoreKey]:
        pods = (pod for pod in self.list_objects("pods", namespace) if not pod["spec"].get("nodeName"))
        return [("pods", namespace, pod["metadata"]["name"]) for pod in pods]

    def discard_state(self, key: StoreKey) -> None:
        self.programs.stop_deleted_pods()

    async def reconcile(self, key: StoreKey, pod: Body) -> float | None:
        if pod["metadata"].get("deletionTimestamp"):
            return await self._stop_pod(pod)
        spec = pod["spec"]
        has_other_scheduler = (
            not spec.get("nodeName") and spec.get("schedulerName", DEFAULT_SCHEDULER) != DEFAULT_SCHEDULER
        )
        if has_other_scheduler or not object_builders.is_active(pod):
            return None
        if object_builders.find_condition(pod["status"], "PodScheduled").get("status") == "True":
            return await self._run_containers(pod)
        message = "" if pod["spec"].get("nodeName") else self._scheduling_failure(pod)
        condition = {"type": "PodScheduled", "status": "True"}
        if message:
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        elif not pod["spec"].get("nodeName"):
            pod = await self.patch("pods", pod, {"spec": {"nodeName": NODE_NAME}})
        conditions = object_builders.with_condition(
            pod["status"].get("conditions") or [], condition, self.clock.timestamp()
        )
        await self.write_status("pods", pod, {**pod["status"], "conditions": conditions})
        return None if message else 0.0

    def _scheduling_failure(self, pod: Body) -> str:
        for volume in pod["spec"].get("volumes", ()):
            if name := volume.get("persistentVolumeClaim", {}).get("claimName"):
                claim = self.find(CLAIMS, name, pod["metadata"]["namespace"])
                if claim is None:
                    return f'0/1 nodes are available: persistentvolumeclaim "{name}" not found.'
                if claim.get("status", {}).get("phase") != "Bound":
                    return "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."
        reasons = {self._behaviours.lookup(pod, container).fails_with for container in pod["spec"]["containers"]}
        return "0/1 nodes are available: 1 Insufficient cpu." if behaviours.UNSCHEDULABLE in reasons else ""

    async def _run_containers(self, pod: Body) -> float | None:
        started_at = self._started_at.setdefault(pod["metadata"]["uid"], self.clock.now())
        age = (self.clock.now() - started_at).total_seconds()
        runs = [
            (container, *self._container_state(pod, container, started_at)) for container in pod["spec"]["containers"]
        ]
        pairs, states = [(container, behaviour) for container, behaviour, _ in runs], [row[2] for row in runs]
        statuses = [_container_status(c, b, s, started_at) for (c, b), s in zip(pairs, states, strict=True)]
        await self.write_status("pods", pod, self._pod_status(pod, states, statuses, started_at))
        self._write_logs(pod, pairs, states)
        until = min(state.until for state in states)
        return None if until == inf else until - age + WAKE_MARGIN

    def _container_state(self, pod: Body, container: Body, started_at: datetime) -> tuple[Behaviour, ContainerState]:
        """State of a container: of the program its image runs, otherwise the simulated one."""
        meta, behaviour = pod["metadata"], self._behaviours.lookup(pod, container)

        def age() -> float:
            return (self.clock.now() - started_at).total_seconds()

        def wake() -> None:
            self.enqueue(("pods", meta["namespace"], meta["name"]))

        policy = pod["spec"].get("restartPolicy", "Always")
        program_state = self.programs.container_state(pod, container, behaviour, age, wake)
        return program_state or (behaviour, behaviours.container_state(behaviour, policy, age()))

    def _pod_status(self, pod: Body, states: list[ContainerState], statuses: list[Body], started_at: datetime) -> Body:
        old, now = pod.get("status", {}), self.clock.timestamp()
        phase = _pod_phase(states)
        conditions: list[Body] = [*old.get("conditions", ())]
        generation = {"observedGeneration": pod["metadata"]["generation"]}
        ready = all(state.ready for state in states)
        not_ready: Body = {"reason": "ContainersNotReady", "message": _unready_message(states, statuses)}
        if phase in {"Succeeded", "Failed"}:
            not_ready = {"reason": "PodCompleted" if phase == "Succeeded" else "PodFailed"}
        has_sandbox = any(state.reason != "ContainerCreating" for state in states)
        for condition_type, is_true in (
            ("PodReadyToStartContainers", has_sandbox and phase in {"Pending", "Running"}),
            ("Initialized", True),
            ("Ready", ready),
            ("ContainersReady", ready),
            ("PodScheduled", True),
        ):
            condition: Body = {"type": condition_type, "status": str(is_true), **generation}
            extra = not_ready if condition_type.endswith("Ready") and not is_true else {}
            extra = not_ready if condition_type == "Initialized" and phase == "Succeeded" else extra
            conditions = object_builders.with_condition(conditions, {**condition, **extra}, now)
        status: Body = {**old, **generation, "phase": phase, "conditions": conditions, "containerStatuses": statuses}
        status |= {"hostIP": "10.0.0.1", "startTime": old.get("startTime") or format_timestamp(started_at)}
        if has_sandbox and "podIP" not in status:
            self._ip_count += 1
            status["podIP"] = f"10.244.{self._ip_count >> 8 & 255}.{self._ip_count & 255}"
            status["podIPs"] = [{"ip": status["podIP"]}]
        return status

    def _write_logs(self, pod: Body, pairs: list[tuple[Body, Behaviour]], states: list[ContainerState]) -> None:
        meta = pod["metadata"]
        for (container, behaviour), state in zip(pairs, states, strict=True):
            key = f"{meta['uid']}/{container['name']}/{state.restarts}"
            if behaviour.log and state.phase != "waiting" and key not in self._logged_runs:
                self._logged_runs.add(key)
                self.client.write_log(meta["namespace"], meta["name"], container["name"], behaviour.log)

    async def _stop_pod(self, pod: Body) -> float | None:
        meta, now = pod["metadata"], self.clock.now()
        requested_at = self._stop_requested_at.setdefault(meta["uid"], now)
        stop_times = [self._behaviours.lookup(pod, container).stops_after for container in pod["spec"]["containers"]]
        grace = float(meta.get("deletionGracePeriodSeconds", 0))
        wait = grace if self.programs.stop_pod(meta["uid"]) else min(grace, max(stop_times))
        remaining = wait - (now - requested_at).total_seconds()
        if remaining > 0:
            return remaining + WAKE_MARGIN
        if meta.get("deletionGracePeriodSeconds"):
            await self.delete("pods", pod, grace=0)
        return None


def _pod_phase(states: list[ContainerState]) -> str:
    if all(state.phase == "terminated" and state.until == inf for state in states):
        return "Failed" if any(state.reason != "Completed" for state in states) else "Succeeded"
    started = all(state.phase != "waiting" or state.reason == "CrashLoopBackOff" for state in states)
    return "Running" if started else "Pending"


def _unready_message(states: list[ContainerState], statuses: list[Body]) -> str:
    names = [row["name"] for state, row in zip(states, statuses, strict=True) if not state.ready]
    return f"containers with unready status: [{' '.join(names)}]"


def _waiting_message(reason: str, image: str) -> Body:
    head = f'failed to pull and unpack image "{image}": failed to resolve reference "{image}"'
    not_found = f"rpc error: code = NotFound desc = {head}: {image}: not found"
    messages = {
        "ErrImagePull": not_found,
        "ImagePullBackOff": f'Back-off pulling image "{image}": ErrImagePull: {not_found}',
    }
    messages["CrashLoopBackOff"] = "back-off restarting failed container"
    return {"message": messages[reason]} if reason in messages else {}


def _container_status(container: Body, behaviour: Behaviour, state: ContainerState, started_at: datetime) -> Body:
    def timestamp(age: float) -> str:
        return format_timestamp(started_at + timedelta(seconds=age))

    def terminated_state(run: float, end: float, code: int) -> Body:
        reason = (
            behaviour.termination_reason if code == behaviour.effective_exit_code else "Error" if code else "Completed"
        )
        return {
            "terminated": {
                "exitCode": code,
                "reason": reason,
                "startedAt": timestamp(run),
                "finishedAt": timestamp(end),
            }
        }

    image = container["image"]
    current: Body = {"waiting": {"reason": state.reason, **_waiting_message(state.reason, image)}}
    if state.phase == "running":
        current = {"running": {"startedAt": timestamp(state.since)}}
    elif state.phase == "terminated":
        current = terminated_state(state.run_started, state.since, behaviour.effective_exit_code)
    last: Body = terminated_state(*state.last_run) if state.last_run else {}
    row = {"name": container["name"], "image": image, "imageID": f"sandbox/{image}" if state.phase != "waiting" else ""}
    row |= {"ready": state.ready, "started": state.phase == "running", "restartCount": state.restarts}
    return {**row, "state": current, "lastState": last}
