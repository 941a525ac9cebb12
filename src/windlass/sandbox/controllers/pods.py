"""Scheduler and kubelet: assigns pods to the node and simulates their containers."""

from __future__ import annotations

from datetime import timedelta
from math import inf
from typing import TYPE_CHECKING, ClassVar

from windlass.sandbox.apiserver.requests import MASTERS, User
from windlass.sandbox.clock import told
from windlass.sandbox.controllers import behaviours, object_builders
from windlass.sandbox.controllers.controller import LAG, Actor
from windlass.sandbox.controllers.programs import Programs

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from windlass.sandbox.apiserver.store import Change
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.controllers.behaviours import Behaviour, Behaviours, State
    from windlass.sandbox.controllers.controller import Place
    from windlass.sandbox.sandbox import Sandbox

NODE = "sandbox"
SLACK = 0.001  # seconds; clocks round to microseconds, so a timer could otherwise fire just before the state changes
CLAIMS = "persistentvolumeclaims"
SCHEDULER = "default-scheduler"


class Pods(Actor):
    user = User(f"system:node:{NODE}", ("system:nodes", "system:authenticated", MASTERS))
    primary = "pods"
    watched: ClassVar[tuple[str, ...]] = (CLAIMS,)

    def __init__(self, sandbox: Sandbox, table: Behaviours, *, lag: float = LAG) -> None:
        self.programs = Programs(sandbox)
        self._table = table
        self._began: dict[str, datetime] = {}
        self._stopping: dict[str, datetime] = {}
        self._logged: set[str] = set()
        self._addresses = 0
        super().__init__(sandbox, lag=lag)

    def concerned(self, change: Change) -> Iterable[Place]:
        if change.new.kind_id == CLAIMS:
            return self._waiting_in(change.new.namespace)
        return super().concerned(change)

    def _waiting_in(self, namespace: str) -> Iterable[Place]:
        pods = (pod for pod in self.every("pods", namespace) if not pod["spec"].get("nodeName"))
        return [("pods", namespace, pod["metadata"]["name"]) for pod in pods]

    def gone(self, place: Place) -> None:
        self.programs.sweep()

    async def reconcile(self, place: Place, pod: Body) -> float | None:
        if pod["metadata"].get("deletionTimestamp"):
            return await self._stop(pod)
        spec = pod["spec"]
        waits_for_another = not spec.get("nodeName") and spec.get("schedulerName", SCHEDULER) != SCHEDULER
        if waits_for_another or not object_builders.is_active(pod):
            return None
        if object_builders.condition_in(pod["status"], "PodScheduled").get("status") == "True":
            return await self._run_on(pod)
        why = "" if pod["spec"].get("nodeName") else self._unschedulable(pod)
        row = {"type": "PodScheduled", "status": "True"}
        if why:
            row = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
        elif not pod["spec"].get("nodeName"):
            pod = await self.patch("pods", pod, {"spec": {"nodeName": NODE}})
        rows = object_builders.with_condition(pod["status"].get("conditions") or [], row, self.sources.timestamp())
        await self.write_status("pods", pod, {**pod["status"], "conditions": rows})
        return None if why else 0.0

    def _unschedulable(self, pod: Body) -> str:
        for volume in pod["spec"].get("volumes", ()):
            if name := volume.get("persistentVolumeClaim", {}).get("claimName"):
                claim = self.find(CLAIMS, name, pod["metadata"]["namespace"])
                if claim is None:
                    return f'0/1 nodes are available: persistentvolumeclaim "{name}" not found.'
                if claim.get("status", {}).get("phase") != "Bound":
                    return "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."
        reasons = {self._table.of(pod, container).fails_with for container in pod["spec"]["containers"]}
        return "0/1 nodes are available: 1 Insufficient cpu." if behaviours.UNSCHEDULABLE in reasons else ""

    async def _run_on(self, pod: Body) -> float | None:
        began = self._began.setdefault(pod["metadata"]["uid"], self.sources.now())
        age = (self.sources.now() - began).total_seconds()
        played = [(container, *self._played(pod, container, began)) for container in pod["spec"]["containers"]]
        parts, states = [(container, behaviour) for container, behaviour, _ in played], [row[2] for row in played]
        shown = [_shown(c, b, s, began) for (c, b), s in zip(parts, states, strict=True)]
        await self.write_status("pods", pod, self._status(pod, states, shown, began))
        self._write_logs(pod, parts, states)
        until = min(state.until for state in states)
        return None if until == inf else until - age + SLACK

    def _played(self, pod: Body, container: Body, began: datetime) -> tuple[Behaviour, State]:
        """State of a container: of the program its image runs, otherwise the simulated one."""
        meta, behaviour = pod["metadata"], self._table.of(pod, container)

        def age() -> float:
            return (self.sources.now() - began).total_seconds()

        def wake() -> None:
            self.later(("pods", meta["namespace"], meta["name"]))

        policy = pod["spec"].get("restartPolicy", "Always")
        found = self.programs.state_of(pod, container, behaviour, age, wake)
        return found or (behaviour, behaviours.state_at(behaviour, policy, age()))

    def _status(self, pod: Body, states: list[State], shown: list[Body], began: datetime) -> Body:
        old, now = pod.get("status", {}), self.sources.timestamp()
        phase = _phase(states)
        rows: list[Body] = [*old.get("conditions", ())]
        generation = {"observedGeneration": pod["metadata"]["generation"]}
        ready = all(state.ready for state in states)
        why: Body = {"reason": "ContainersNotReady", "message": _unready(states, shown)}
        if phase in {"Succeeded", "Failed"}:
            why = {"reason": "PodCompleted" if phase == "Succeeded" else "PodFailed"}
        sandboxed = any(state.reason != "ContainerCreating" for state in states)
        for kind, holds in (
            ("PodReadyToStartContainers", sandboxed and phase in {"Pending", "Running"}),
            ("Initialized", True),
            ("Ready", ready),
            ("ContainersReady", ready),
            ("PodScheduled", True),
        ):
            row: Body = {"type": kind, "status": str(holds), **generation}
            extra = why if kind.endswith("Ready") and not holds else {}
            extra = why if kind == "Initialized" and phase == "Succeeded" else extra
            rows = object_builders.with_condition(rows, {**row, **extra}, now)
        status: Body = {**old, **generation, "phase": phase, "conditions": rows, "containerStatuses": shown}
        status |= {"hostIP": "10.0.0.1", "startTime": old.get("startTime") or told(began)}
        if sandboxed and "podIP" not in status:
            self._addresses += 1
            status["podIP"] = f"10.244.{self._addresses >> 8 & 255}.{self._addresses & 255}"
            status["podIPs"] = [{"ip": status["podIP"]}]
        return status

    def _write_logs(self, pod: Body, parts: list[tuple[Body, Behaviour]], states: list[State]) -> None:
        meta = pod["metadata"]
        for (container, behaviour), state in zip(parts, states, strict=True):
            key = f"{meta['uid']}/{container['name']}/{state.restarts}"
            if behaviour.log and state.word != "waiting" and key not in self._logged:
                self._logged.add(key)
                self.calls.write_log(meta["namespace"], meta["name"], container["name"], behaviour.log)

    async def _stop(self, pod: Body) -> float | None:
        meta, now = pod["metadata"], self.sources.now()
        asked = self._stopping.setdefault(meta["uid"], now)
        wishes = [self._table.of(pod, container).stops_after for container in pod["spec"]["containers"]]
        grace = float(meta.get("deletionGracePeriodSeconds", 0))
        wait = grace if self.programs.stop(meta["uid"]) else min(grace, max(wishes))
        left = wait - (now - asked).total_seconds()
        if left > 0:
            return left + SLACK
        if meta.get("deletionGracePeriodSeconds"):
            await self.delete("pods", pod, grace=0)
        return None


def _phase(states: list[State]) -> str:
    if all(state.word == "terminated" and state.until == inf for state in states):
        return "Failed" if any(state.reason != "Completed" for state in states) else "Succeeded"
    started = all(state.word != "waiting" or state.reason == "CrashLoopBackOff" for state in states)
    return "Running" if started else "Pending"


def _unready(states: list[State], shown: list[Body]) -> str:
    names = [row["name"] for state, row in zip(states, shown, strict=True) if not state.ready]
    return f"containers with unready status: [{' '.join(names)}]"


def _why(reason: str, image: str) -> Body:
    head = f'failed to pull and unpack image "{image}": failed to resolve reference "{image}"'
    lost = f"rpc error: code = NotFound desc = {head}: {image}: not found"
    words = {"ErrImagePull": lost, "ImagePullBackOff": f'Back-off pulling image "{image}": ErrImagePull: {lost}'}
    words["CrashLoopBackOff"] = "back-off restarting failed container"
    return {"message": words[reason]} if reason in words else {}


def _shown(container: Body, behaviour: Behaviour, state: State, began: datetime) -> Body:
    def at(age: float) -> str:
        return told(began + timedelta(seconds=age))

    def ended(run: float, end: float, code: int) -> Body:
        reason = behaviour.end_reason if code == behaviour.code else "Error" if code else "Completed"
        return {"terminated": {"exitCode": code, "reason": reason, "startedAt": at(run), "finishedAt": at(end)}}

    image = container["image"]
    now: Body = {"waiting": {"reason": state.reason, **_why(state.reason, image)}}
    if state.word == "running":
        now = {"running": {"startedAt": at(state.since)}}
    elif state.word == "terminated":
        now = ended(state.ran_from, state.since, behaviour.code)
    last: Body = ended(*state.last) if state.last else {}
    row = {"name": container["name"], "image": image, "imageID": f"sandbox/{image}" if state.word != "waiting" else ""}
    row |= {"ready": state.ready, "started": state.word == "running", "restartCount": state.restarts}
    return {**row, "state": now, "lastState": last}
