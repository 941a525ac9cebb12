"""python -m tests.recordings record [NAME ...]: plays the scripts on the bed of WINDLASS_TESTBED, writes the files."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from tests.recordings import sequence_files
from tests.recordings.applications import ARGOCD as ARGOCD_NAMESPACE
from tests.recordings.applications import HERE
from tests.recordings.clusters import staged
from tests.recordings.scripts import SCRIPTS
from tests.testbed import argocd
from tests.testbed.bed import Cluster
from tests.testbed.components import ARGOCD
from tests.testbed.progress import say, step
from windlass.kube.auth import kubeconfigs
from windlass.kube.client.clients import KubeClient
from windlass.kube.transport.calls import CallLimits, CallSender
from windlass.kube.transport.http import HttpTransport

if TYPE_CHECKING:
    from tests.recordings.scripts import Script


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.recordings", description=__doc__)
    parser.add_argument("command", choices=["record"])
    parser.add_argument("names", nargs="*", help="only these; all of them by default")
    arguments = parser.parse_args()
    wanted = [script for script in SCRIPTS if not arguments.names or script.name in arguments.names]
    state = os.environ.get("WINDLASS_TESTBED")  # noqa: TID251 - the entrance of a tool
    if not state:
        say("recordings: no bed is named by WINDLASS_TESTBED; `make recordings` starts one")
        return 2
    cluster = Cluster(Path(state))
    if any(script.argocd for script in wanted):
        argocd.install(cluster)
    return asyncio.run(_record(cluster, wanted))


async def _record(cluster: Cluster, wanted: list[Script]) -> int:
    connection = kubeconfigs.load_file(cluster.kubeconfig)
    transport = HttpTransport(connection)
    kube = KubeClient(
        CallSender(transport, limits=CallLimits(calls_per_second=1000, burst=1000)), field_manager="recorder"
    )
    failed = 0
    try:
        for script in wanted:
            try:
                with step(f"recording {script.name}"):
                    await _play(kube, cluster, script)
            except* Exception:  # noqa: BLE001 - the others are still worth recording
                traceback.print_exc()
                failed += 1
    finally:
        await transport.close()
    return 1 if failed else 0


async def _play(kube: KubeClient, cluster: Cluster, script: Script) -> None:
    versions = {"kubernetes": await kube.version()}
    if script.argocd:
        versions["argocd"] = ARGOCD.version
    async with staged(kube, cluster, script.name, script.kinds) as stage:
        if script.argocd:
            async with stage.watching(HERE):
                await script.play(stage)
        else:
            await script.play(stage)
    sequence_files.write(stage.recording(script.name, script.about, versions))


if __name__ == "__main__":
    assert ARGOCD_NAMESPACE == argocd.NAMESPACE
    sys.exit(main())
