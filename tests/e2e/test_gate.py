"""The gate on live syncs of real Argo CD: nothing begins before what it waits for is truly there.

The witness is the API server: Applications and Deployments as it stored them, in the order of its versions.
"""

from __future__ import annotations

import json
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.platforms import LEVELS, Platform, deployment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.testbed.bed import Cluster

ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Stored:
    """One object as it was from this version on."""

    version: int
    kind: str
    name: str
    body: dict[str, Any]


@contextmanager
def watched(cluster: Cluster, file: Path, *arguments: str) -> Iterator[None]:
    """What kubectl sees of a kind, object after object, in a file."""
    command = ["kubectl", f"--kubeconfig={cluster.kubeconfig}", "get", *arguments, "--watch", "--output=json"]
    with file.open("w") as out, subprocess.Popen(command, stdout=out) as process:
        try:
            yield
            time.sleep(2)
            assert process.poll() is None, "the watch has ended, and with it what it saw"
        finally:
            process.terminate()


def stored(*files: Path) -> list[Stored]:
    decoder, found = json.JSONDecoder(), []
    for file in files:
        text, at = file.read_text().rstrip(), 0
        while at < len(text):
            body, at = decoder.raw_decode(text, at)
            at += 1  # the end of its last line
            meta = body["metadata"]
            found.append(Stored(int(meta["resourceVersion"]), body["kind"], meta["name"], body))
    return sorted(found, key=lambda each: each.version)


def is_rolled_out(body: dict[str, Any], script: str) -> bool:
    """Of a Deployment: this very script runs, is ready, and nothing else does."""
    status, template = body.get("status", {}), body["spec"]["template"]["spec"]
    counts = [status.get(count, 0) for count in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")]
    is_seen = status.get("observedGeneration") == body["metadata"]["generation"]
    return is_seen and counts == [1, 1, 1, 1] and template["containers"][0]["command"][-1] == script


def is_begun(body: dict[str, Any], commit: str) -> bool:
    return bool((body.get("operation") or {}).get("sync", {}).get("revision") == commit)


def says_synced_and_healthy(body: dict[str, Any], commit: str) -> bool:
    """What those wait for who trust the word alone. How often that is early is a matter of luck: told, not asserted."""
    status = body.get("status", {})
    operation, sync = status.get("operationState", {}), status.get("sync", {})
    return (
        operation.get("phase") == "Succeeded"
        and operation.get("syncResult", {}).get("revision") == commit
        and (sync.get("status"), sync.get("revision")) == ("Synced", commit)
        and status.get("health", {}).get("status") == "Healthy"
    )


@dataclass
class Round:
    """One commit, in which every Deployment is another one."""

    platform: Platform
    commit: str
    scripts: dict[str, str]
    gates: int = 0
    early: tuple[str, ...] = ()
    naively_early: tuple[str, ...] = ()

    def judge(self, history: list[Stored]) -> None:
        """Each first operation of this commit, beside the Deployments of that moment."""
        truth: dict[str, bool] = {}
        begun: set[str] = set()
        believed: set[str] = set()
        for each in history:
            if each.kind == "Deployment":
                truth[each.name] = is_rolled_out(each.body, self.scripts[each.name])
                continue
            name = each.name.removeprefix(f"{self.platform.name}-")
            if name not in self.scripts:
                continue
            if name not in begun and is_begun(each.body, self.commit):
                begun.add(name)
                self.gates += len(self.platform.needs[name])
                self.early += tuple(f"{need} for {name}" for need in self.platform.needs[name] if not truth.get(need))
            if name not in believed and says_synced_and_healthy(each.body, self.commit):
                believed.add(name)
                self.naively_early += () if truth.get(name) else (name,)
        assert begun == believed == self.scripts.keys()


@pytest.mark.timeout(600)
def test_the_gate_never_opens_early_on_live_syncs(argocd_cluster: Cluster, tmp_path: Path) -> None:
    platform = Platform(argocd_cluster, tmp_path, "gates")
    rounds = []
    argocd_cluster.namespace("gates")
    applications, deployments = tmp_path / "applications", tmp_path / "deployments"
    with (
        watched(argocd_cluster, applications, "applications", "-n", "argocd"),
        watched(argocd_cluster, deployments, "deployments", "-n", "gates"),
    ):
        for number in range(ROUNDS):
            platform.changes = {name: deployment(name, 1 + number / 10) for name in LEVELS}
            commit = platform.publish()
            scripts = {
                name: body["spec"]["template"]["spec"]["containers"][0]["command"][-1]
                for name, body in platform.changes.items()
            }
            rounds.append(Round(platform, commit, scripts))
            code, report = platform.report("deploy")
            assert (code, report["summary"]["counts"]) == (0, {"succeeded": len(LEVELS)})
    history = stored(applications, deployments)
    for each in rounds:
        each.judge(history)
        wrong = ", ".join(each.naively_early) or "none"
        print(f"{each.commit[:8]}: {len(each.scripts)} syncs, {each.gates} gates; the word alone was early for {wrong}")
    assert [each.early for each in rounds] == [()] * ROUNDS
    removed = platform.windlass("teardown", "--confirm", "development")
    assert removed.code == 0, removed.output


@pytest.mark.timeout(300)
def test_a_refresh_is_carried_out_in_whatever_word_it_is_asked_for(argocd_cluster: Cluster, tmp_path: Path) -> None:
    """Asked for a second time it must be another word: what changes nothing is no news to Argo CD."""
    platform = Platform(argocd_cluster, tmp_path, "words", {"a": ()})
    platform.publish()
    assert platform.windlass("deploy").code == 0
    for word in ("normal", "again"):
        before = platform.shown()["a"]["status"]["reconciledAt"]
        time.sleep(1)  # its times are whole seconds
        mark = f"argocd.argoproj.io/refresh={word}"
        argocd_cluster.kubectl("annotate", "application", platform.full("a"), mark, "-n", "argocd")
        deadline = time.monotonic() + 30
        while "argocd.argoproj.io/refresh" in platform.shown()["a"]["metadata"].get("annotations", {}):
            assert time.monotonic() < deadline, f"{word} is not heard"
            time.sleep(0.1)
        assert platform.shown()["a"]["status"]["reconciledAt"] > before
    assert platform.windlass("teardown", "--confirm", "development").code == 0
