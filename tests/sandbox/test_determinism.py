"""One seed, one history: whatever the hash seed of the process."""

from __future__ import annotations

import subprocess
import sys

STORY = """
import asyncio, sys
from tests.sandbox.histories import journal
sys.stdout.buffer.write(journal(seed=int(sys.argv[1])))
"""


def journal(seed: int, hash_seed: int) -> bytes:
    environ = {"PYTHONHASHSEED": str(hash_seed)}
    command = [sys.executable, "-c", STORY, str(seed)]
    return subprocess.run(command, env=environ, check=True, capture_output=True, timeout=30).stdout


def test_one_seed_gives_one_journal_byte_for_byte_in_any_process() -> None:
    first = journal(seed=7, hash_seed=1)
    assert first.count(b"\n") > 50
    assert journal(seed=7, hash_seed=2) == first
    assert journal(seed=8, hash_seed=1) != first
