"""All recordings there are: name, what it shows, what is watched, the script."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.recordings import applications, workloads
from tests.recordings.workloads import CLAIMS, DAEMON_SETS, OF_JOBS, OF_PODS, STATEFUL_SETS, VOLUMES
from windlass.kube.client.resources import PODS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.recordings.clusters import Stage
    from windlass.kube.client.resources import Resource


@dataclass(frozen=True, slots=True)
class Script:
    name: str
    about: str
    kinds: tuple[Resource, ...]
    play: Callable[[Stage], Awaitable[None]]
    argocd: bool = False


def _argocd(name: str, about: str, play: Callable[[Stage], Awaitable[None]]) -> Script:
    return Script(name, about, applications.OF_APPLICATIONS, play, argocd=True)


SCRIPTS = (
    Script("deployment", "A Deployment comes, changes, grows, shrinks and goes.", OF_PODS, workloads.deployment),
    Script(
        "deployment-without-image", "A rollout stops at an image that cannot be pulled, and is put right.",
        OF_PODS, workloads.deployment_without_image,
    ),
    Script(
        "deployment-crashing", "A Deployment whose container exits at once.",
        OF_PODS, workloads.deployment_that_never_starts,
    ),
    Script(
        "statefulset", "A StatefulSet comes in order, changes in reverse order, shrinks and goes.",
        (STATEFUL_SETS, PODS), workloads.stateful_set,
    ),
    Script("daemonset", "A DaemonSet comes, changes and goes.", (DAEMON_SETS, PODS), workloads.daemon_set),
    Script("job-complete", "A Job that succeeds.", OF_JOBS, workloads.job_complete),
    Script("job-parallel", "A Job of three pods, two at once.", OF_JOBS, workloads.job_parallel),
    Script("job-failed", "A Job that fails, is tried once more, and fails.", OF_JOBS, workloads.job_failed),
    Script("job-failed-without-retry", "A Job that fails for good at once.", OF_JOBS, workloads.job_without_retry),
    Script("job-deadline", "A Job that takes too long.", OF_JOBS, workloads.job_deadline),
    Script("job-out-of-memory", "A Job killed for its memory.", OF_JOBS, workloads.job_out_of_memory),
    Script("job-without-image", "A Job whose image cannot be pulled.", OF_JOBS, workloads.job_without_image),
    Script("job-suspended", "A Job is suspended and resumed.", OF_JOBS, workloads.job_suspended),
    Script("claim", "A claim waits for a volume, is bound, and lets it go.", (CLAIMS, VOLUMES), workloads.claim),
    _argocd("application-first-sync", "An Application is created and synced.", applications.first_sync),
    _argocd("application-update", "A new commit is synced; then a sync with nothing to do.", applications.update),
    _argocd("application-failed-sync", "Syncs that fail.", applications.failed_sync),
    _argocd("application-broken-source", "A source that cannot be rendered.", applications.broken_source),
    _argocd("application-degraded", "A synced Application becomes Degraded, and Healthy again.", applications.degraded),
    _argocd("application-refresh", "Refreshes, normal and hard.", applications.refresh),
    _argocd("application-automated", "Commits are synced without being asked for.", applications.automated),
    _argocd("application-self-heal", "What was changed by hand is put right.", applications.self_heal),
    _argocd("application-cascade", "An Application goes with all it made.", applications.cascade),
    _argocd("application-of-applications", "One child by selective sync, and its end.", applications.app_of_apps),
    _argocd("application-terminated", "A running operation is terminated.", applications.terminated),
    _argocd("application-second-operation", "A sync asked for while another runs.", applications.second_operation),
)  # fmt: skip
