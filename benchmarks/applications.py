"""Argo CD Applications of about 4 KB, as a platform has them: the load of the benchmarks."""

from __future__ import annotations

import json
from typing import Any

APPLICATIONS = 5_000
EVENTS = 40_000
APPLIES = 4_000
IN_FLIGHT = 200


def application(number: int) -> dict[str, Any]:
    revision = f"{number:040x}"
    resources = [
        {
            "group": "apps",
            "version": "v1",
            "kind": "Deployment",
            "namespace": f"team-{number % 40}",
            "name": f"service-{number}-{part}",
            "status": "Synced",
            "health": {"status": "Healthy"},
        }
        for part in range(14)
    ]
    source = {"repoURL": "https://git.example.org/platform.git", "path": f"apps/{number}", "targetRevision": revision}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": f"application-{number:05d}",
            "namespace": "argocd",
            "uid": f"00000000-0000-0000-0000-{number:012d}",
            "resourceVersion": str(1_000_000 + number),
            "generation": 7,
            "creationTimestamp": "2030-01-01T00:00:00Z",
            "labels": {"stack": f"stack-{number % 11}", "app.kubernetes.io/instance": "root"},
            "finalizers": ["resources-finalizer.argocd.argoproj.io"],
        },
        "spec": {
            "project": "default",
            "source": source,
            "destination": {"server": "https://kubernetes.default.svc", "namespace": f"team-{number % 40}"},
            "syncPolicy": {"syncOptions": ["CreateNamespace=true", "ServerSideApply=true"]},
        },
        "status": {
            "sync": {"status": "Synced", "revision": revision, "comparedTo": {"source": source}},
            "health": {"status": "Healthy", "lastTransitionTime": "2030-01-01T00:10:00Z"},
            "reconciledAt": "2030-01-01T00:20:00Z",
            "operationState": {
                "phase": "Succeeded",
                "message": "successfully synced (all tasks run)",
                "startedAt": "2030-01-01T00:09:00Z",
                "finishedAt": "2030-01-01T00:09:30Z",
                "operation": {"sync": {"revision": revision}, "info": [{"name": "run", "value": "0123456789abcdef"}]},
                "syncResult": {"revision": revision, "source": source},
            },
            "resources": resources,
            "summary": {"images": [f"registry.example.org/service:{number}"] * 4},
        },
    }


def pages(size: int) -> list[bytes]:
    """The list in pages whose continue tokens are their numbers."""
    numbers = range(APPLICATIONS)
    starts = range(0, APPLICATIONS, size)
    return [
        json.dumps(
            {
                "apiVersion": "argoproj.io/v1alpha1",
                "kind": "ApplicationList",
                "metadata": {
                    "resourceVersion": "2000000",
                    "continue": str(page + 1) if start + size < APPLICATIONS else "",
                },
                "items": [application(number) for number in numbers[start : start + size]],
            }
        ).encode()
        for page, start in enumerate(starts)
    ]
