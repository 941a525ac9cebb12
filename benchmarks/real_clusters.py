"""`make bench-real`: a platform raised on real Argo CD, beside its own sync waves and beside kubectl, in one cluster.

Twelve applications; of five rounds, in which the three take turns, the medians count.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.results import Figure, figure, write
from tests.e2e.platforms import Platform, application, deployment, source
from tests.testbed import argocd
from tests.testbed.bed import Bed, Cluster

INTRODUCTION = """\
# Benchmarks on a real cluster

`make bench-real` writes this page. It deploys twelve applications on a real cluster in three ways: with
`windlass deploy` on Argo CD, with Argo CD's sync waves (an app of apps whose root waits for the health of its
children), and with `kubectl apply` in order and a watch. The last one is a lower bound: no Argo CD, no proof of health,
no report. The three take turns in one cluster; the table shows medians of five rounds. Absolute times depend on the
machine. A ratio below 1 means that Windlass is faster.

"""
ROUNDS = 5
LIMIT = 300.0
Needs = Mapping[str, tuple[str, ...]]
_THIRD = ("1", "2", "3")
LEVELS: Needs = {
    f"{level}{place}": tuple(f"{before}{each}" for before in before for each in _THIRD)
    for before, level in (("", "a"), ("a", "b"), ("b", "c"), ("c", "d"))
    for place in _THIRD
}
"""Four full levels: each waits for all of the level before."""
CHAINS: Needs = {
    "a1": (), "b1": ("a1",), "c1": ("b1",), "d1": ("c1",),
    "a2": (), "b2": ("a2",), "c2": ("b2",), "d2": ("c2",),
    "a3": (), "b3": ("a3",), "c3": ("b3",), "d3": ("c3",),
}  # fmt: skip
SECONDS = {
    "a1": 15, "b1": 1, "c1": 1, "d1": 1,
    "a2": 1, "b2": 15, "c2": 1, "d2": 1,
    "a3": 1, "b3": 1, "c3": 15, "d3": 1,
}  # fmt: skip
"""Each level has a slow one, in another chain: whoever waits for whole levels waits for all of them."""
HEALTH = """\
hs = {status = "Progressing", message = ""}
if obj.status ~= nil and obj.status.health ~= nil then
  hs.status = obj.status.health.status
  if obj.status.health.message ~= nil then hs.message = obj.status.health.message end
end
return hs
"""
"""What Argo CD's documentation tells users of sync waves to set: without it a wave does not wait for Applications."""


class Contest:
    """One graph, raised and removed again and again."""

    def __init__(
        self, cluster: Cluster, name: str, needs: Mapping[str, tuple[str, ...]], seconds: Mapping[str, float]
    ) -> None:
        self._cluster = cluster
        self._name = name
        self._needs = needs
        self._folder = Path(tempfile.mkdtemp(prefix="windlass-bench-"))
        self._manifests = {each: deployment(each, seconds.get(each, 0)) for each in needs}
        self._platform = Platform(cluster, self._folder, name, needs, dict(self._manifests))

    def windlass(self) -> float:
        self._platform.publish()
        began = time.monotonic()
        ended = self._platform.windlass("deploy")
        took = time.monotonic() - began
        assert ended.code == 0, ended.output
        return took

    def waves(self) -> float:
        """Children that sync themselves, in one wave for each level; the root is over when its last wave is healthy."""
        files = {f"{each}/all.json": json.dumps(body) for each, body in self._manifests.items()}
        for each in self._needs:
            files[f"waves/{each}.json"] = json.dumps(self._child(each))
        commit = self._cluster.git.publish(f"{self._name}-waves", files)
        root = application(
            f"{self._name}-root", source(self._cluster.git.url(f"{self._name}-waves"), "waves"), "argocd", {}
        )
        del root["metadata"]["finalizers"]
        root["operation"] = {"initiatedBy": {"username": "bench"}, "sync": {"revision": commit}}
        began = time.monotonic()
        self._cluster.apply(json.dumps(root))
        command = ("wait", f"application/{self._name}-root", "-n", "argocd", f"--timeout={LIMIT:.0f}s")
        self._cluster.kubectl(*command, "--for=jsonpath={.status.operationState.phase}=Succeeded", timeout=LIMIT)
        for each in self._needs:  # the root does not wait for its last wave
            self._cluster.wait(f"deployment/{each}", "create", "-n", self._name)
            self._cluster.kubectl("rollout", "status", f"deployment/{each}", "-n", self._name, timeout=LIMIT)
        return time.monotonic() - began

    def kubectl(self) -> float:
        """Each applied as soon as those it waits for are ready: no Argo CD, no proof, no report. The floor."""
        self._cluster.namespace(self._name)
        ready = {each: threading.Event() for each in self._needs}

        def raise_one(each: str) -> None:
            for needed in self._needs[each]:
                ready[needed].wait(LIMIT)
            self._cluster.apply(json.dumps(self._manifests[each]), "-n", self._name)
            self._cluster.kubectl("rollout", "status", f"deployment/{each}", "-n", self._name, timeout=LIMIT)
            ready[each].set()

        began = time.monotonic()
        threads = [threading.Thread(target=raise_one, args=(each,)) for each in self._needs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(event.is_set() for event in ready.values())
        return time.monotonic() - began

    def clear(self) -> None:
        kubectl = self._cluster.kubectl
        kubectl("delete", "application", "platform-root", f"{self._name}-root", "-n", "argocd", "--ignore-not-found")
        kubectl("delete", "applications", "-n", "argocd", "--all", "--timeout=120s", timeout=150)
        kubectl("delete", "namespace", self._name, "--ignore-not-found", "--timeout=120s", timeout=150)

    def _child(self, name: str) -> dict[str, Any]:
        found = source(self._cluster.git.url(f"{self._name}-waves"), name)
        made = application(self._platform.full(name), found, self._name, {"automated": {}})
        made["metadata"]["annotations"] = {"argocd.argoproj.io/sync-wave": str("abcd".index(name[0]))}
        return made


def medians(contest: Contest, rounds: int) -> dict[str, float]:
    ways = {"windlass": contest.windlass, "waves": contest.waves, "kubectl": contest.kubectl}
    times: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds):
        for way, run in ways.items():
            contest.clear()
            times[way].append(run())
            print(f"round {number + 1}: {way} {times[way][-1]:.1f} s", flush=True)
    contest.clear()
    return {way: median(found) for way, found in times.items()}


def compared(name: str, target: str, found: dict[str, float], what: str) -> list[Figure]:
    floor = "kubectl in order"
    return [
        figure(f"executor.real.{name}.ratio", found["windlass"] / found["waves"], "x", target, f"sync waves; {what}"),
        figure(f"executor.real.{name}.floor.ratio", found["windlass"] / found["kubectl"], "x", "", floor),
        figure(
            f"executor.real.{name}.waves.floor.ratio", found["waves"] / found["kubectl"], "x", "", "kubectl in order"
        ),
        figure(f"executor.real.{name}_s", found["windlass"], "s", "", "the whole process"),
    ]


def main(cluster: Cluster, rounds: int) -> None:
    argocd.install(cluster)
    key = "resource.customizations.health.argoproj.io_Application"
    cluster.kubectl("patch", "configmap", "argocd-cm", "-n", "argocd", "-p", json.dumps({"data": {key: HEALTH}}))
    levels = medians(Contest(cluster, "levels", LEVELS, {}), rounds)
    graph = medians(Contest(cluster, "graph", CHAINS, SECONDS), rounds)
    figures = [
        *compared("levels", "<= 1.05", levels, "12 applications in 4 full levels"),
        *compared("graph", "<= 0.75", graph, "12 applications, readiness 1 to 15 s, a slow one in each level"),
    ]
    for each in figures:
        print(f"{each.name:40} {each.value:>8.3f} {each.unit:3} {each.target:8} {each.against}")
    write(figures, "benchmarks-real", INTRODUCTION)


if __name__ == "__main__":
    many = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with Bed() as bed:
        main(bed.cluster(), many)
