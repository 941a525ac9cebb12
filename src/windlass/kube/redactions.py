"""Redaction of text from other programs for use in messages: short, on one line, nothing that looks like a secret."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

EXCERPT = 300  # characters; the last lines of a plugin's error output, not its log
SHORTEST_SECRET = 4  # replacing every "1" or "no" that is the value of an environment variable would garble the text
HIDDEN = "[redacted]"

_SECRETS = (
    (re.compile(r"-----BEGIN [^-]*-----.*?(-----END [^-]*-----|$)", re.DOTALL), HIDDEN),
    (re.compile(r"\beyJ[\w-]+\.[\w-]*\.?[\w-]*"), HIDDEN),  # a JWT
    (re.compile(r"\b(bearer|basic)\s+\S+", re.IGNORECASE), rf"\1 {HIDDEN}"),
    (re.compile(r"://[^/\s]+@"), f"://{HIDDEN}@"),
    (re.compile(r"((?:secret|passw(?:or)?d|key)[\"']?\s?[=:]\s?)[\"']?[^\s\"',}]+", re.IGNORECASE), rf"\1{HIDDEN}"),
    (
        re.compile(r"(token(?:=|[\"']\s?:\s?))[\"']?[^\s\"',}]+", re.IGNORECASE),
        rf"\1{HIDDEN}",
    ),  # `token: expired` is kept
    (re.compile(r"\b[0-9a-fA-F]{20,}\b"), HIDDEN),
)
_LONG_RUN = re.compile(r"[\w+/-]{24,}={0,2}")  # treated as base64 if it has both letters and digits
_LETTER = re.compile("[A-Za-z]")
_DIGIT = re.compile("[0-9]")


def excerpt_without_secrets(output: bytes, secrets: Iterable[str]) -> str:
    """The end of `output` on one line, without secrets; the given `secrets` are replaced wherever they occur."""
    text = output.decode("utf-8", "replace")
    for secret in sorted((secret for secret in secrets if len(secret) >= SHORTEST_SECRET), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    text = one_line_without_secrets(text)
    return text if len(text) <= EXCERPT else "…" + text[1 - EXCERPT :]


def without_secret_shapes(text: str) -> str:
    """Replace what is a secret by its format or by the word before it; other long runs of letters and digits stay."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def one_line_without_secrets(text: str) -> str:
    """Replace secrets and anything like base64, drop ANSI escapes, and collapse whitespace and control characters."""
    text = without_secret_shapes(text)
    text = _LONG_RUN.sub(lambda run: HIDDEN if _DIGIT.search(run[0]) and _LETTER.search(run[0]) else run[0], text)
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)
    return re.sub(r"[\x00-\x20\x7f-\x9f]+", " ", text).strip()
