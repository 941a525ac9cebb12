"""The kept inputs of each decoder, and what a decoder makes of an input."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from tests.fuzz.decoders import DECODERS

CORPUS = Path(__file__).parent / "corpus"
MAX_KEPT_BYTES = 4_096
MAX_KEPT_INPUTS = 20  # of each decoder


def load_corpus(name: str) -> dict[str, bytes]:
    """By file name."""
    return {path.name: path.read_bytes() for path in sorted((CORPUS / name).iterdir())}


def keep(name: str, content: bytes) -> Path | None:
    """Write the input to the corpus; `None` if it is too large, or the corpus is."""
    folder = CORPUS / name
    if len(content) > MAX_KEPT_BYTES or len(list(folder.iterdir())) >= MAX_KEPT_INPUTS:
        return None
    path = folder / hashlib.sha256(content).hexdigest()[:16]
    path.write_bytes(content)
    return path


def result_kind(name: str, content: bytes) -> str:
    """The result of decoding in a few words, without the numbers and names in it. Raises what is not our error."""
    decode, expected = DECODERS[name]
    try:
        return f"decoded {str(decode(content))[:60]}"
    except expected as error:
        words = re.sub(r"[0-9]+|'[^']*'|\"[^\"]*\"|\[[^\]]*\]|`[^`]*`", "*", error.what)
        return f"{type(error).__name__}: {words[:80]}"
