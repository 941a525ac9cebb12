"""Job controller: runs pods until enough have succeeded or too many have failed; a finalizer counts each once."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

from windlass.sandbox.apiserver.access.authentication import controller_user
from windlass.sandbox.controllers import object_builders
from windlass.sandbox.controllers.controller import SandboxController

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from windlass.sandbox.apiserver.store import StoreChange
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.controllers.controller import StoreKey

TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"
INITIAL_RETRY_DELAY, MAX_RETRY_DELAY = 10.0, 600.0  # seconds before a failed pod is replaced, doubling
FINAL_CONDITIONS = {"SuccessCriteriaMet": "Complete", "FailureTarget": "Failed"}
BACKOFF_EXCEEDED = ("FailureTarget", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
DEADLINE_EXCEEDED = ("FailureTarget", "DeadlineExceeded", "Job was active longer than specified deadline")
COMPLETIONS_REACHED = ("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods")


class Jobs(SandboxController):
    user = controller_user("job-controller")
    primary = "jobs.batch"
    watched: ClassVar[tuple[str, ...]] = ("pods",)

    def reset(self) -> None:
        self._failed_at: dict[str, datetime] = {}
        super().reset()

    def affected_keys(self, change: StoreChange) -> Iterable[StoreKey]:
        """Also terminating pods: if their Job no longer exists, its finalizer must not block their deletion."""
        yield from super().affected_keys(change)
        new = change.new
        if new.kind_id == "pods" and TRACKING_FINALIZER.encode() in new.tail and b'"deletionTimestamp"' in new.tail:
            yield ("pods", new.namespace, new.name)

    async def reconcile(self, key: StoreKey, body: Body) -> float | None:
        if key[0] == "pods":
            owners = body["metadata"].get("ownerReferences", ())
            if not any(self.find(self.primary, owner["name"], key[1]) for owner in owners):
                await self._remove_tracking_finalizer(body)
            return None
        status = body.get("status") or {}
        if object_builders.find_condition(status, "Complete") or object_builders.find_condition(status, "Failed"):
            return await self._delete_after_ttl(body, status)
        return await self._run_job(body, status)

    async def _delete_after_ttl(self, job: Body, status: Body) -> float | None:
        ttl = job["spec"].get("ttlSecondsAfterFinished")
        if ttl is None:
            return None
        ended = max(object_builders.parse_time(row["lastTransitionTime"]) for row in status["conditions"])
        remaining = (ended + timedelta(seconds=ttl) - self.clock.now()).total_seconds()
        if remaining <= 0:
            await self.delete(self.primary, job)
        return remaining if remaining > 0 else None

    async def _run_job(self, job: Body, status: Body) -> float | None:
        spec, suspended = job["spec"], job["spec"].get("suspend", False)
        pods = self.list_owned("pods", job)
        ended = [
            pod
            for pod in pods
            if TRACKING_FINALIZER in pod["metadata"].get("finalizers", ()) and not object_builders.is_active(pod)
        ]
        active = [pod for pod in pods if object_builders.is_active(pod)]
        result, delay = self._job_result(job, status, pods, ended)
        if result or suspended:
            for pod in active:
                await self.delete("pods", pod)
            ended, active = [*ended, *active], []
        finished = _finished_uids(ended, suspended=suspended)
        if any(_phase(pod) == "Failed" for pod in ended):
            self._failed_at[job["metadata"]["uid"]] = self.clock.now()
        total = {**status, **{word: status.get(word, 0) + len(uids) for word, uids in finished.items()}}
        if not result and not suspended:
            active, delay = await self._create_missing_pods(job, total, active, delay)
        await self._record_finished_pods(job, {**status, "active": len(active)}, finished, result)
        for pod in ended:
            await self._remove_tracking_finalizer(pod)
        status = self._with_result_condition(total, result)
        pods = self.list_owned("pods", job)
        terminating = sum(
            "deletionTimestamp" in pod["metadata"] and _phase(pod) in {"Pending", "Running"} for pod in pods
        )
        status = self._job_status(spec, status, active, terminating)
        if result and not terminating:
            kind, reason, message = result
            condition = {"type": FINAL_CONDITIONS[kind], "status": "True", "reason": reason, "message": message}
            now = self.clock.timestamp()
            status["conditions"] = object_builders.with_condition(status["conditions"], condition, now)
            status |= {"completionTime": now} if result is COMPLETIONS_REACHED else {}
        await self._write_job_status(job, status)
        return delay

    def _job_result(
        self, job: Body, status: Body, pods: list[Body], ended: list[Body]
    ) -> tuple[tuple[str, str, str] | None, float | None]:
        """The final condition of the Job if it is finished, and the seconds until its deadline if it is not."""
        for result in (COMPLETIONS_REACHED, BACKOFF_EXCEEDED, DEADLINE_EXCEEDED):
            if object_builders.find_condition(status, result[0]).get("reason") == result[1]:
                return result, None
        spec = job["spec"]
        if spec.get("suspend"):
            return None, None
        succeeded = status.get("succeeded", 0) + sum(_phase(pod) == "Succeeded" for pod in ended)
        failed = status.get("failed", 0) + sum(_phase(pod) != "Succeeded" for pod in ended)
        restarts = sum(
            row["restartCount"] for pod in pods for row in pod.get("status", {}).get("containerStatuses", ())
        )
        if succeeded >= spec.get("completions", 1):
            return COMPLETIONS_REACHED, None
        if failed + restarts > spec.get("backoffLimit", 6):
            return BACKOFF_EXCEEDED, None
        if "activeDeadlineSeconds" not in spec or "startTime" not in status:
            return None, spec.get("activeDeadlineSeconds")
        deadline = object_builders.parse_time(status["startTime"]) + timedelta(seconds=spec["activeDeadlineSeconds"])
        remaining = (deadline - self.clock.now()).total_seconds()
        return (DEADLINE_EXCEEDED, None) if remaining <= 0 else (None, remaining)

    def _with_result_condition(self, status: Body, result: tuple[str, str, str] | None) -> Body:
        if result is None:
            return status
        condition = {"type": result[0], "status": "True", "reason": result[1], "message": result[2]}
        conditions = object_builders.with_condition(status.get("conditions", []), condition, self.clock.timestamp())
        return {**status, "conditions": conditions}

    async def _record_finished_pods(
        self, job: Body, status: Body, finished: dict[str, list[str]], result: tuple[str, str, str] | None
    ) -> None:
        """List ended pods in the status before their finalizer is removed: a crash in between counts none twice."""
        if finished:
            fields = {
                name: value
                for name, value in self._with_result_condition(status, result).items()
                if name != "active" or value
            }
            terminating = sum("deletionTimestamp" in pod["metadata"] for pod in self.list_owned("pods", job))
            await self._write_job_status(
                job, {**fields, "uncountedTerminatedPods": finished, "ready": 0, "terminating": terminating}
            )

    async def _remove_tracking_finalizer(self, pod: Body) -> None:
        pod = self.reread("pods", pod)
        kept = [name for name in pod["metadata"].get("finalizers", ()) if name != TRACKING_FINALIZER]
        await self.patch("pods", pod, {"metadata": {"finalizers": kept or None}})

    async def _create_missing_pods(
        self, job: Body, status: Body, active: list[Body], delay: float | None
    ) -> tuple[list[Body], float | None]:
        spec, meta = job["spec"], job["metadata"]
        missing = min(spec.get("parallelism", 1), spec.get("completions", 1) - status.get("succeeded", 0)) - len(active)
        failed = self._failed_at.get(meta["uid"])
        if missing > 0 and failed:
            backoff = min(MAX_RETRY_DELAY, INITIAL_RETRY_DELAY * 2 ** (status.get("failed", 1) - 1))
            remaining = backoff - (self.clock.now() - failed).total_seconds()
            if remaining > 0:
                return active, min(remaining, delay or remaining)
        for _ in range(missing):
            body = object_builders.pod_from_template(
                spec["template"], job, {"generateName": f"{meta['name']}-", "finalizers": [TRACKING_FINALIZER]}
            )
            active = [*active, await self.create("pods", body, meta["namespace"])]
        return active, delay

    def _job_status(self, spec: Body, status: Body, active: list[Body], terminating: int) -> Body:
        now, suspended = self.clock.timestamp(), spec.get("suspend", False)
        new_status: Body = {name: value for name, value in status.items() if name != "active"}
        was_suspended = object_builders.find_condition(status, "Suspended").get("status") == "True"
        if suspended or was_suspended:
            words = ("JobSuspended", "Job suspended") if suspended else ("JobResumed", "Job resumed")
            condition = {"type": "Suspended", "status": str(suspended), "reason": words[0], "message": words[1]}
            new_status["conditions"] = object_builders.with_condition(status.get("conditions", []), condition, now)
        if not suspended and (was_suspended or "startTime" not in new_status):
            new_status["startTime"] = now
        new_status |= {"active": len(active)} if active else {}
        ready = sum(object_builders.is_ready(pod) for pod in active)
        return {**new_status, "ready": ready, "terminating": terminating, "uncountedTerminatedPods": {}}

    async def _write_job_status(self, job: Body, status: Body) -> None:
        await self.write_status(self.primary, self.reread(self.primary, job), status)


def _finished_uids(ended: list[Body], *, suspended: bool) -> dict[str, list[str]]:
    """UIDs of ended pods under `succeeded` and `failed`; pods that a suspension stopped do not count as failed."""
    uids: dict[str, list[str]] = {}
    for pod in ended:
        outcome = "succeeded" if _phase(pod) == "Succeeded" else "failed"
        if outcome == "succeeded" or not suspended:
            uids.setdefault(outcome, []).append(pod["metadata"]["uid"])
    return uids


def _phase(pod: Body) -> str:
    return str(pod.get("status", {}).get("phase", "Pending"))
