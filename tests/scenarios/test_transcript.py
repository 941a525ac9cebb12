"""docs/transcript.md is what Windlass prints today."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.transcript import DOCUMENT, comparable, record

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_transcript_is_what_is_printed(tmp_path: Path) -> None:
    """`make transcript` records it again."""
    assert comparable(record(tmp_path)) == comparable(DOCUMENT.read_text())
