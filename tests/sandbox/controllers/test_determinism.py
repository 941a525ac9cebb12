"""One seed, one history; and an idle cluster only compares its Applications again."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import Counter

from tests.sandbox.controllers.clusters import run, world
from tests.sandbox.controllers.objects import URL, application, config, workload
from windlass.sandbox.argocd.repositories import MemoryRepository

COUNT = 12


async def journal(seed: int) -> bytes:
    """Some Applications synced at once, with chance in all times."""
    async with world(seed) as w:
        w.argocd.delays.jitter = 0.5
        names = [f"app-{number}" for number in range(COUNT)]
        files = {f"{name}/all.yaml": [config(name), workload(name=name)] for name in names}
        w.argocd.repositories[URL] = MemoryRepository(files)
        calls = w.sandbox.client()
        for name in names:
            await calls.create("applications.argoproj.io", application(name, syncPolicy={"automated": {}}))
        await asyncio.sleep(60)  # noqa: TID251 - of the loop that jumps
        apps = await calls.list("applications.argoproj.io")
        assert {app["status"]["health"]["status"] for app in apps} == {"Healthy"}
        before = len(w.sandbox.server.journal.entries)
        await asyncio.sleep(3600)  # noqa: TID251 - likewise
        idle = Counter(
            (entry.verb, entry.kind, entry.name) for entry in list(w.sandbox.server.journal.entries)[before:]
        )
        assert idle.keys() == {("patch", "applications.argoproj.io", name) for name in names}
        assert max(idle.values()) <= 2 * 3600 / w.argocd.delays.resync  # jitter halves it at most
        return b"".join(w.sandbox.server.journal.json_lines())


def test_the_same_seed_gives_the_same_journal_in_any_process() -> None:
    words = "import sys; from tests.sandbox.controllers import test_determinism as t; "
    code = words + "sys.stdout.buffer.write(t.run(t.journal(7)))"
    told = []
    for number in ("1", "2"):
        environ = {**os.environ, "PYTHONHASHSEED": number}  # noqa: TID251 - for a process
        ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=environ)
        told.append(ran.stdout)
    assert told[0] == told[1] == run(journal(7))


def test_another_seed_gives_another_journal() -> None:
    assert run(journal(1)) != run(journal(2))
