"""A short diagnosis of an unhealthy Application: sync errors, failing pods, their events and last log lines.

It is informational only: whatever cannot be read is left out, and the total time is limited.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from windlass.argo.cd.applications import failed_rows, is_remote, live_rows, parse
from windlass.kube.api_errors import KubeError
from windlass.kube.client.readers import Selection
from windlass.kube.client.resources import PODS, Resource
from windlass.kube.redactions import without_secret_shapes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from windlass.argo.cd.applications import Application, LiveRow
    from windlass.kube.client.objects import Plain
    from windlass.kube.client.readers import KubeReader

WITHIN = 10.0  # seconds per node
MOST_PODS, MOST_EVENTS, LOG_LINES = 3, 3, 5
LONGEST = 300  # characters
EVENTS = Resource("", "v1", "events", "Event")
CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
WORKLOADS = {
    ("apps", "Deployment"): Resource("apps", "v1", "deployments", "Deployment"),
    ("apps", "StatefulSet"): Resource("apps", "v1", "statefulsets", "StatefulSet"),
    ("apps", "DaemonSet"): Resource("apps", "v1", "daemonsets", "DaemonSet"),
    ("apps", "ReplicaSet"): Resource("apps", "v1", "replicasets", "ReplicaSet"),
    ("batch", "Job"): Resource("batch", "v1", "jobs", "Job"),
}


async def diagnosed(reader: KubeReader, application: Application) -> tuple[str, ...]:
    lines = list(_said(application))
    if not is_remote(application):
        try:
            async with asyncio.timeout(WITHIN):
                lines.extend([line async for line in _of_workloads(reader, application)])
        except TimeoutError:
            lines.append(f"more could not be read within {WITHIN:g} s")
        except KubeError as error:
            lines.append(f"more could not be read: {error.what}")
    return tuple(without_secret_shapes(line)[:LONGEST] for line in lines)


def _said(application: Application) -> Iterator[str]:
    """Conditions and sync failures that Argo CD reports in the status."""
    state = parse(application)
    for condition in state.conditions:
        yield f"condition {condition.type}: {_one_line(condition.message)}"
    for kind, name, message in failed_rows(application):
        yield f"{kind} {name} was not synced: {_one_line(message)}"


async def _of_workloads(reader: KubeReader, application: Application) -> AsyncIterator[str]:
    left = MOST_PODS
    for row in live_rows(application):
        resource = WORKLOADS.get((row.group, row.kind))
        if resource is None or left <= 0:
            continue
        workload = await reader.get(resource.named(row.name, row.namespace))
        selector = _selector(workload)
        for pod in (await reader.list(PODS.within(row.namespace), select=selector)).items if selector.labels else ():
            if not _is_fine(pod) and left > 0:
                left -= 1
                async for line in _of_pod(reader, row, pod):
                    yield line


def _selector(workload: Plain) -> Selection:
    labels = ((workload.get("spec") or {}).get("selector") or {}).get("matchLabels") or {}
    return Selection(labels=",".join(f"{name}={value}" for name, value in sorted(labels.items())))


def _is_fine(pod: Plain) -> bool:
    status = pod.get("status") or {}
    conditions = {row.get("type"): row.get("status") for row in status.get("conditions") or ()}
    return status.get("phase") == "Succeeded" or conditions.get("Ready") == "True"


async def _of_pod(reader: KubeReader, row: LiveRow, pod: Plain) -> AsyncIterator[str]:
    name, status = pod["metadata"]["name"], pod.get("status") or {}
    yield f"{row.kind} {row.namespace}/{row.name}: pod {name} is {status.get('phase') or 'not there yet'}"
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    for container in containers:
        if told := _container(container):
            yield f"  container {container.get('name')} {told}"
    select = Selection(fields=f"involvedObject.name={name}")
    events = (await reader.list(EVENTS.within(row.namespace), select=select)).items
    warnings = [event for event in events if event.get("type") == "Warning"]
    for event in sorted(warnings, key=lambda event: str(event.get("lastTimestamp") or ""))[-MOST_EVENTS:]:
        yield f"  event {event.get('reason')}: {_one_line(event.get('message') or '')}"
    for container in containers:
        async for line in _logs(reader, pod, container):
            yield line


def _container(status: Plain) -> str:
    """Empty if the container runs and is ready."""
    state, last = status.get("state") or {}, (status.get("lastState") or {}).get("terminated") or {}
    if waiting := state.get("waiting"):
        said = f": {_one_line(waiting['message'])}" if waiting.get("message") else ""
        return f"waits, {waiting.get('reason')}{said}{_exit(last)}"
    if ended := state.get("terminated"):
        return f"ended, {ended.get('reason')}, exit code {ended.get('exitCode')}"
    return "" if status.get("ready") else f"runs and is not ready{_exit(last)}"


def _exit(last: Plain) -> str:
    return f"; it last ended with {last.get('reason')}, exit code {last.get('exitCode')}" if last else ""


async def _logs(reader: KubeReader, pod: Plain, status: Plain) -> AsyncIterator[str]:
    """Last log lines of a container that has terminated or is not ready; nothing if it never ran."""
    state, meta = status.get("state") or {}, pod["metadata"]
    ended_before = bool((status.get("lastState") or {}).get("terminated"))
    if (status.get("ready") and "running" in state) or not (
        ended_before or "running" in state or "terminated" in state
    ):
        return
    ref = PODS.named(meta["name"], meta["namespace"])
    is_previous = ended_before and "running" not in state and "terminated" not in state
    try:
        text = await reader.logs(ref, container=str(status.get("name")), tail=LOG_LINES, previous=is_previous)
    except KubeError:
        return
    for line in text.splitlines():
        yield f"  log {status.get('name')}: {line}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
