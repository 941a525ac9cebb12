"""Redaction of text from other programs for use in messages: short, on one line, nothing that looks like a secret."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

OUTPUT_EXCERPT_LENGTH = 300  # characters; the last lines of a plugin's error output, not its log
MIN_SECRET_LENGTH = 4  # replacing every "1" or "no" that is the value of an environment variable would garble the text
REDACTED = "[redacted]"

_SECRET_PATTERNS = (
    (re.compile(r"-----BEGIN [^-]*-----.*?(-----END [^-]*-----|$)", re.DOTALL), REDACTED),
    (re.compile(r"\beyJ[\w-]+\.[\w-]*\.?[\w-]*"), REDACTED),  # a JWT
    (re.compile(r"\b(bearer|basic)\s+\S+", re.IGNORECASE), rf"\1 {REDACTED}"),
    (re.compile(r"://[^/\s]+@"), f"://{REDACTED}@"),
    (re.compile(r"((?:secret|passw(?:or)?d|key)[\"']?\s?[=:]\s?)[\"']?[^\s\"',}]+", re.IGNORECASE), rf"\1{REDACTED}"),
    (
        re.compile(r"(token(?:=|[\"']\s?:\s?))[\"']?[^\s\"',}]+", re.IGNORECASE),
        rf"\1{REDACTED}",
    ),  # `token: expired` is kept
    (re.compile(r"\b[0-9a-fA-F]{20,}\b"), REDACTED),
)
_LONG_RUN = re.compile(r"[\w+/-]{24,}={0,2}")  # treated as base64 if it has both letters and digits
_LETTER = re.compile("[A-Za-z]")
_DIGIT = re.compile("[0-9]")


def redacted_excerpt(output: bytes, secrets: Iterable[str]) -> str:
    """The end of `output` on one line, without secrets; the given `secrets` are replaced wherever they occur."""
    text = output.decode("utf-8", "replace")
    for secret in sorted((secret for secret in secrets if len(secret) >= MIN_SECRET_LENGTH), key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    text = redact_to_one_line(text)
    return text if len(text) <= OUTPUT_EXCERPT_LENGTH else "…" + text[1 - OUTPUT_EXCERPT_LENGTH :]


def redact_secret_patterns(text: str) -> str:
    """Replace what is a secret by its format or by the word before it; other long runs of letters and digits stay."""
    for pattern, replacement in _SECRET_PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def redact_to_one_line(text: str) -> str:
    """Replace secrets and anything like base64, drop ANSI escapes, and collapse whitespace and control characters."""
    text = redact_secret_patterns(text)
    text = _LONG_RUN.sub(lambda run: REDACTED if _DIGIT.search(run[0]) and _LETTER.search(run[0]) else run[0], text)
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)
    return re.sub(r"[\x00-\x20\x7f-\x9f]+", " ", text).strip()
