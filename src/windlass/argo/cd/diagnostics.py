"""A short diagnosis of an unhealthy Application: sync errors, failing pods, their events and last log lines.

It is informational only: whatever cannot be read is left out, and the total time is limited.
"""

from __future__ import annotations

import asyncio
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from windlass.argo.cd.application_resources import failed_resources, resource_addresses
from windlass.errors import WindlassError
from windlass.kube.api_errors import KubeError, NotPermitted
from windlass.kube.client.readers import Selection
from windlass.kube.client.resources import PODS, Resource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from windlass.argo.cd.application_resources import ResourceAddress
    from windlass.argo.cd.applications import Application
    from windlass.kube.client.objects import RawObject
    from windlass.kube.client.readers import KubeReader

DIAGNOSTICS_TIMEOUT = 10.0  # seconds per node
MAX_PODS, MAX_EVENTS, LOG_LINES = 3, 3, 5
MAX_LINES = 40  # of one node
MAX_LINE_START, MAX_LINE_END = 150, 250  # characters of a long line that are kept; the cause is at its end
MALFORMED = (AttributeError, KeyError, TypeError, ValueError)
EVENTS = Resource("", "v1", "events", "Event")
WORKLOADS = {
    ("apps", "Deployment"): Resource("apps", "v1", "deployments", "Deployment"),
    ("apps", "StatefulSet"): Resource("apps", "v1", "statefulsets", "StatefulSet"),
    ("apps", "DaemonSet"): Resource("apps", "v1", "daemonsets", "DaemonSet"),
    ("apps", "ReplicaSet"): Resource("apps", "v1", "replicasets", "ReplicaSet"),
    ("batch", "Job"): Resource("batch", "v1", "jobs", "Job"),
}


async def diagnose_application(
    reader: KubeReader, application: Application, denied: set[str] | None = None
) -> tuple[str, ...]:
    """The lines. `denied` collects what the user is not permitted to read, as `VERB RESOURCE`."""
    denied = set() if denied is None else denied
    lines = list(islice(_argocd_problems(application), MAX_LINES // 2))  # the workloads have something to say, too
    if not application.state.is_remote:
        try:
            async with asyncio.timeout(DIAGNOSTICS_TIMEOUT):
                await _add_workload_problems(reader, application, lines, denied)
        except TimeoutError:
            lines.append(f"more could not be read within {DIAGNOSTICS_TIMEOUT:g} s")
    return tuple(_short_line(reader, line) for line in lines[:MAX_LINES])


def main_problem(lines: Sequence[str]) -> str:
    """Of these lines the ones about the first pod with a failing container, as one; empty if there is none."""
    container = next((index for index, line in enumerate(lines) if line.startswith("  container ")), None)
    if container is None:
        return ""
    pod = next(line for line in reversed(lines[:container]) if not line.startswith(" "))
    logs = [line for line in takewhile(lambda line: line.startswith(" "), lines[container:]) if "  log " in line[:6]]
    return "; ".join((pod, lines[container].strip(), *(line.strip() for line in logs[-1:])))


def _short_line(reader: KubeReader, line: str) -> str:
    """The line with its indentation."""
    text = line.lstrip(" ")
    return line[: len(line) - len(text)] + reader.redactor(reader.redactor.message(text, MAX_LINE_START, MAX_LINE_END))


def _argocd_problems(application: Application) -> Iterator[str]:
    """Conditions and sync failures that Argo CD reports in the status."""
    state = application.state
    for condition in state.conditions:
        yield f"condition {condition.type}: {condition.message}"
    for kind, name, message in failed_resources(application):
        yield f"{kind} {name} was not synced: {message}"


async def _add_workload_problems(
    reader: KubeReader, application: Application, lines: list[str], denied: set[str]
) -> None:
    """Add the lines one by one, so that those before an error or the end of the time stay."""
    remaining_pods = MAX_PODS
    for row in resource_addresses(application):
        if (row.group, row.kind) not in WORKLOADS or not row.namespace:
            continue
        if remaining_pods <= 0 or len(lines) >= MAX_LINES:
            return
        try:
            pods = await _unhealthy_pods(reader, row)
            for pod in pods[:remaining_pods]:
                remaining_pods -= 1
                async for line in _pod_problems(reader, row, pod, denied):
                    lines.append(line)  # noqa: PERF401 - what was read before an error stays
        except WindlassError as error:
            _note_denial(error, denied)
            lines.append(f"{row.kind} {row.namespace}/{row.name} could not be read: {error.what}")
        except MALFORMED as error:  # no API server sends this, and the other workloads still tell something
            lines.append(f"{row.kind} {row.namespace}/{row.name} could not be understood ({type(error).__name__})")


async def _unhealthy_pods(reader: KubeReader, row: ResourceAddress) -> list[RawObject]:
    workload = await reader.get(WORKLOADS[row.group, row.kind].named(row.name, row.namespace))
    selector = _pod_selector(workload)
    if not selector.labels:
        return []
    pods = (await reader.list(PODS.in_namespace(row.namespace), select=selector)).items
    return [pod for pod in pods if not _is_pod_healthy(pod)]


def _pod_selector(workload: RawObject) -> Selection:
    labels = ((workload.get("spec") or {}).get("selector") or {}).get("matchLabels") or {}
    return Selection(labels=",".join(f"{name}={value}" for name, value in sorted(labels.items())))


def _is_pod_healthy(pod: RawObject) -> bool:
    status = pod.get("status") or {}
    conditions = {row.get("type"): row.get("status") for row in status.get("conditions") or ()}
    return status.get("phase") == "Succeeded" or conditions.get("Ready") == "True"


def _note_denial(error: WindlassError, denied: set[str]) -> None:
    if isinstance(error, NotPermitted):
        denied.add(f"{error.denial.verb} {error.denial.resource}")


async def _pod_problems(
    reader: KubeReader, row: ResourceAddress, pod: RawObject, denied: set[str]
) -> AsyncIterator[str]:
    name, status = pod["metadata"]["name"], pod.get("status") or {}
    yield f"{row.kind} {row.namespace}/{row.name}: pod {name} is {status.get('phase') or 'not there yet'}"
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    for container in containers:
        if problem := _container_problem(container):
            yield f"  container {container.get('name')} {problem}"
    for event in await _warning_events(reader, row.namespace, name, denied):
        yield f"  event {event.get('reason')}: {event.get('message') or ''}"
    for container in containers:
        async for line in _container_logs(reader, pod, container, denied):
            yield line


async def _warning_events(reader: KubeReader, namespace: str, pod: str, denied: set[str]) -> list[RawObject]:
    """The latest warnings about a pod; none if events cannot be read."""
    try:
        listing = await reader.list(
            EVENTS.in_namespace(namespace), select=Selection(fields=f"involvedObject.name={pod}")
        )
    except KubeError as error:
        _note_denial(error, denied)
        return []
    warnings = [event for event in listing.items if event.get("type") == "Warning"]
    return sorted(warnings, key=lambda event: str(event.get("lastTimestamp") or ""))[-MAX_EVENTS:]


def _container_problem(status: RawObject) -> str:
    """Empty if the container runs and is ready."""
    state, last = status.get("state") or {}, (status.get("lastState") or {}).get("terminated") or {}
    if waiting := state.get("waiting"):
        message = f": {waiting['message']}" if waiting.get("message") else ""
        return f"waits, {waiting.get('reason')}{message}{_last_exit(last)}"
    if terminated := state.get("terminated"):
        return f"ended, {terminated.get('reason')}, exit code {terminated.get('exitCode')}"
    return "" if status.get("ready") else f"runs and is not ready{_last_exit(last)}"


def _last_exit(last: RawObject) -> str:
    return f"; it last ended with {last.get('reason')}, exit code {last.get('exitCode')}" if last else ""


async def _container_logs(
    reader: KubeReader, pod: RawObject, status: RawObject, denied: set[str]
) -> AsyncIterator[str]:
    """Last log lines of a container that has terminated or is not ready; nothing if it never ran."""
    state, meta = status.get("state") or {}, pod["metadata"]
    has_terminated = bool((status.get("lastState") or {}).get("terminated"))
    if (status.get("ready") and "running" in state) or not (
        has_terminated or "running" in state or "terminated" in state
    ):
        return
    ref = PODS.named(meta["name"], meta["namespace"])
    is_previous = has_terminated and "running" not in state and "terminated" not in state
    try:
        text = await reader.logs(ref, container=str(status.get("name")), tail=LOG_LINES, previous=is_previous)
    except KubeError as error:
        _note_denial(error, denied)
        return
    for line in text.splitlines()[-LOG_LINES:]:  # a server may send more than was asked for
        yield f"  log {status.get('name')}: {line}"
