"""Job controller: runs pods until enough have succeeded or too many have failed; a finalizer counts each once."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

from windlass.sandbox.apiserver.access.authentication import controller
from windlass.sandbox.controllers import object_builders
from windlass.sandbox.controllers.controller import Actor

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from windlass.sandbox.apiserver.store import Change
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.controllers.controller import Place

TRACKING = "batch.kubernetes.io/job-tracking"
FIRST_RETRY, LAST_RETRY = 10.0, 600.0  # seconds before a failed pod is replaced, doubling
FINAL = {"SuccessCriteriaMet": "Complete", "FailureTarget": "Failed"}
BACKOFF = ("FailureTarget", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
DEADLINE = ("FailureTarget", "DeadlineExceeded", "Job was active longer than specified deadline")
REACHED = ("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods")


class Jobs(Actor):
    user = controller("job-controller")
    primary = "jobs.batch"
    watched: ClassVar[tuple[str, ...]] = ("pods",)

    def forget(self) -> None:
        self._failed_at: dict[str, datetime] = {}
        super().forget()

    def concerned(self, change: Change) -> Iterable[Place]:
        """Also terminating pods: if their Job no longer exists, its finalizer must not block their deletion."""
        yield from super().concerned(change)
        new = change.new
        if new.kind_id == "pods" and TRACKING.encode() in new.tail and b'"deletionTimestamp"' in new.tail:
            yield ("pods", new.namespace, new.name)

    async def reconcile(self, place: Place, found: Body) -> float | None:
        if place[0] == "pods":
            owners = found["metadata"].get("ownerReferences", ())
            if not any(self.find(self.primary, owner["name"], place[1]) for owner in owners):
                await self._let_go(found)
            return None
        status = found.get("status") or {}
        if object_builders.condition_in(status, "Complete") or object_builders.condition_in(status, "Failed"):
            return await self._after_its_end(found, status)
        return await self._run_job(found, status)

    async def _after_its_end(self, found: Body, status: Body) -> float | None:
        ttl = found["spec"].get("ttlSecondsAfterFinished")
        if ttl is None:
            return None
        ended = max(object_builders.moment_of(row["lastTransitionTime"]) for row in status["conditions"])
        left = (ended + timedelta(seconds=ttl) - self.sources.now()).total_seconds()
        if left <= 0:
            await self.delete(self.primary, found)
        return left if left > 0 else None

    async def _run_job(self, found: Body, status: Body) -> float | None:
        spec, suspended = found["spec"], found["spec"].get("suspend", False)
        pods = self.owned("pods", found)
        ended = [
            pod
            for pod in pods
            if TRACKING in pod["metadata"].get("finalizers", ()) and not object_builders.is_active(pod)
        ]
        active = [pod for pod in pods if object_builders.is_active(pod)]
        goal, wait = self._goal(found, status, pods, ended)
        if goal or suspended:
            for pod in active:
                await self.delete("pods", pod)
            ended, active = [*ended, *active], []
        counts = _ends(ended, suspended=suspended)
        if any(_phase(pod) == "Failed" for pod in ended):
            self._failed_at[found["metadata"]["uid"]] = self.sources.now()
        total = {**status, **{word: status.get(word, 0) + len(uids) for word, uids in counts.items()}}
        if not goal and not suspended:
            active, wait = await self._replenished(found, total, active, wait)
        await self._note(found, {**status, "active": len(active)}, counts, goal)
        for pod in ended:
            await self._let_go(pod)
        status = self._with_goal(total, goal)
        pods = self.owned("pods", found)
        going = sum("deletionTimestamp" in pod["metadata"] and _phase(pod) in {"Pending", "Running"} for pod in pods)
        status = self._told(spec, status, active, going)
        if goal and not going:
            row = {"type": FINAL[goal[0]], "status": "True", "reason": goal[1], "message": goal[2]}
            now = self.sources.timestamp()
            status["conditions"] = object_builders.with_condition(status["conditions"], row, now)
            status |= {"completionTime": now} if goal is REACHED else {}
        await self._write(found, status)
        return wait

    def _goal(
        self, found: Body, status: Body, pods: list[Body], ended: list[Body]
    ) -> tuple[tuple[str, str, str] | None, float | None]:
        """The final condition of the Job if it is finished, and the seconds until its deadline if it is not."""
        for goal in (REACHED, BACKOFF, DEADLINE):
            if object_builders.condition_in(status, goal[0]).get("reason") == goal[1]:
                return goal, None
        spec = found["spec"]
        if spec.get("suspend"):
            return None, None
        done = status.get("succeeded", 0) + sum(_phase(pod) == "Succeeded" for pod in ended)
        failed = status.get("failed", 0) + sum(_phase(pod) != "Succeeded" for pod in ended)
        restarts = sum(
            row["restartCount"] for pod in pods for row in pod.get("status", {}).get("containerStatuses", ())
        )
        if done >= spec.get("completions", 1):
            return REACHED, None
        if failed + restarts > spec.get("backoffLimit", 6):
            return BACKOFF, None
        if "activeDeadlineSeconds" not in spec or "startTime" not in status:
            return None, spec.get("activeDeadlineSeconds")
        ends = object_builders.moment_of(status["startTime"]) + timedelta(seconds=spec["activeDeadlineSeconds"])
        left = (ends - self.sources.now()).total_seconds()
        return (DEADLINE, None) if left <= 0 else (None, left)

    def _with_goal(self, status: Body, goal: tuple[str, str, str] | None) -> Body:
        if goal is None:
            return status
        row = {"type": goal[0], "status": "True", "reason": goal[1], "message": goal[2]}
        rows = object_builders.with_condition(status.get("conditions", []), row, self.sources.timestamp())
        return {**status, "conditions": rows}

    async def _note(
        self, found: Body, status: Body, counts: dict[str, list[str]], goal: tuple[str, str, str] | None
    ) -> None:
        """List ended pods in the status before their finalizer is removed: a crash in between counts none twice."""
        if counts:
            kept = {name: value for name, value in self._with_goal(status, goal).items() if name != "active" or value}
            going = sum("deletionTimestamp" in pod["metadata"] for pod in self.owned("pods", found))
            await self._write(found, {**kept, "uncountedTerminatedPods": counts, "ready": 0, "terminating": going})

    async def _let_go(self, pod: Body) -> None:
        pod = self.again("pods", pod)
        kept = [name for name in pod["metadata"].get("finalizers", ()) if name != TRACKING]
        await self.patch("pods", pod, {"metadata": {"finalizers": kept or None}})

    async def _replenished(
        self, found: Body, status: Body, active: list[Body], wait: float | None
    ) -> tuple[list[Body], float | None]:
        spec, meta = found["spec"], found["metadata"]
        missing = min(spec.get("parallelism", 1), spec.get("completions", 1) - status.get("succeeded", 0)) - len(active)
        failed = self._failed_at.get(meta["uid"])
        if missing > 0 and failed:
            pause = min(LAST_RETRY, FIRST_RETRY * 2 ** (status.get("failed", 1) - 1))
            left = pause - (self.sources.now() - failed).total_seconds()
            if left > 0:
                return active, min(left, wait or left)
        for _ in range(missing):
            body = object_builders.pod_from(
                spec["template"], found, {"generateName": f"{meta['name']}-", "finalizers": [TRACKING]}
            )
            active = [*active, await self.create("pods", body, meta["namespace"])]
        return active, wait

    def _told(self, spec: Body, status: Body, active: list[Body], going: int) -> Body:
        now, suspended = self.sources.timestamp(), spec.get("suspend", False)
        told: Body = {name: value for name, value in status.items() if name != "active"}
        was = object_builders.condition_in(status, "Suspended").get("status") == "True"
        if suspended or was:
            words = ("JobSuspended", "Job suspended") if suspended else ("JobResumed", "Job resumed")
            row = {"type": "Suspended", "status": str(suspended), "reason": words[0], "message": words[1]}
            told["conditions"] = object_builders.with_condition(status.get("conditions", []), row, now)
        if not suspended and (was or "startTime" not in told):
            told["startTime"] = now
        told |= {"active": len(active)} if active else {}
        ready = sum(object_builders.is_ready(pod) for pod in active)
        return {**told, "ready": ready, "terminating": going, "uncountedTerminatedPods": {}}

    async def _write(self, found: Body, status: Body) -> None:
        await self.write_status(self.primary, self.again(self.primary, found), status)


def _ends(ended: list[Body], *, suspended: bool) -> dict[str, list[str]]:
    """UIDs of ended pods under `succeeded` and `failed`; pods that a suspension stopped do not count as failed."""
    counts: dict[str, list[str]] = {}
    for pod in ended:
        word = "succeeded" if _phase(pod) == "Succeeded" else "failed"
        if word == "succeeded" or not suspended:
            counts.setdefault(word, []).append(pod["metadata"]["uid"])
    return counts


def _phase(pod: Body) -> str:
    return str(pod.get("status", {}).get("phase", "Pending"))
