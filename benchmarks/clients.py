"""The Kubernetes clients side by side: each in fresh processes that take turns against one server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING

from benchmarks.applications import APPLICATIONS, APPLIES, EVENTS, IN_FLIGHT
from benchmarks.results import figure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.results import Figure

ROUNDS = {"list": 9, "watch": 3, "apply": 3}  # the shorter a run, the more of them
OURS = ["windlass_plain", "windlass_typed"]
OFFICIAL = ["official_sync", "official_aio"]
CONTESTANTS = [*OURS, *OFFICIAL, "lightkube_async"]
SCENARIOS = ["list", "watch", "apply"]
WORK = {"list": APPLICATIONS, "watch": EVENTS, "apply": APPLIES}
Best = dict[tuple[str, str], dict[str, float]]
"""The quickest of each contestant's runs: what else the machine did can only make a run slower."""


def on_core(number: int) -> list[str]:
    """Server and client each have a core of their own, where there are two."""
    return ["taskset", "-c", str(number)] if (os.cpu_count() or 1) > 1 else []


@contextmanager
def api_server() -> Iterator[str]:
    command = [*on_core(0), sys.executable, "-m", "benchmarks.api_server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin
        assert server.stdout
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()


def run_clients() -> Best:
    runs: dict[tuple[str, str], list[dict[str, float]]] = {}
    with api_server() as port:
        for scenario in SCENARIOS:
            for turn in range(ROUNDS[scenario]):
                for contestant in CONTESTANTS:
                    if scenario == "apply" and contestant == "windlass_typed":
                        continue  # an apply has nothing typed
                    command = [
                        *on_core(1),
                        sys.executable,
                        "-m",
                        f"benchmarks.contestants.{contestant}",
                        scenario,
                        port,
                    ]
                    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
                    if done.returncode:
                        raise SystemExit(f"{contestant} {scenario} failed:\n{done.stderr}")
                    result = json.loads(done.stdout)
                    runs.setdefault((scenario, contestant), []).append(result)
                    print(
                        f"{turn + 1}/{ROUNDS[scenario]} {scenario:6} {contestant:16} {result['seconds']:7.3f} s",
                        flush=True,
                    )
    return {key: {unit: min(run[unit] for run in many) for unit in many[0]} for key, many in runs.items()}


def figures() -> Iterator[Figure]:
    print(
        f"list {APPLICATIONS} Applications of 4 KB, watch {EVENTS} events, {APPLIES} applies with {IN_FLIGHT} in flight"
    )
    best = run_clients()

    def seconds(scenario: str, contestants: list[str]) -> float:
        """The best of several: a rival is taken at its fastest."""
        return min(best[scenario, contestant]["seconds"] for contestant in contestants)

    ours = {"list": "windlass_typed", "watch": "windlass_plain", "apply": "windlass_plain"}
    targets = {"list": ">= 3", "watch": ">= 4", "apply": ">= 2"}
    for scenario in SCENARIOS:
        our = seconds(scenario, [ours[scenario]])
        official = f"kubernetes {version('kubernetes')}, the faster of sync and aio"
        yield figure(f"client.{scenario}.ratio", seconds(scenario, OFFICIAL) / our, "x", targets[scenario], official)
        rival = f"lightkube {version('lightkube')}"
        yield figure(f"client.{scenario}.lightkube.ratio", seconds(scenario, ["lightkube_async"]) / our, "x", "", rival)
        yield figure(f"client.{scenario}.per_second", WORK[scenario] / our, "/s")
    for scenario, contestant in (("list", "windlass_plain"), ("watch", "windlass_typed")):
        kind = contestant.removeprefix("windlass_")
        ratio = seconds(scenario, OFFICIAL) / seconds(scenario, [contestant])
        yield figure(f"client.{scenario}.{kind}.ratio", ratio, "x", "", official)
    yield figure("client.list.rss_mb", best["list", "windlass_typed"]["rss_mb"], "MB", "< 120", "typed")
    yield figure("client.list.plain.rss_mb", best["list", "windlass_plain"]["rss_mb"], "MB")
    for contestant in (*OFFICIAL, "lightkube_async"):
        yield figure(f"client.list.{contestant}.rss_mb", best["list", contestant]["rss_mb"], "MB")
