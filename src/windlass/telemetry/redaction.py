"""Redaction of secrets in output: known secrets in every encoding, and text that looks like a secret."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from windlass.kube.redactions import MIN_SECRET_LENGTH, REDACTED, redact_secret_patterns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MIN_SECRET_LINE = 8  # characters; shorter lines of a multi-line secret, such as a single brace, are not secret

_QUOTED_SECRET = re.compile(
    r"((?:secret|passw(?:or)?d|token|key)[\"']?\s?[=:]\s?)(?:\"[^\"]*\"|'[^']*')", re.IGNORECASE
)  # the whole quoted value, because a password may contain spaces
_LONG_RUN = re.compile(r"[\w+/-]{24,}={0,2}")
_MIXED_BASE64 = re.compile(r"(?=[^/]*[a-z])(?=[^/]*[A-Z])(?=[^/]*[0-9])[^/]{8,}")
_LOWER_BASE64 = re.compile(r"(?=.*[a-z])(?=.*[0-9])[a-z0-9]{24,}=*")


class Redactor:
    """Callable that returns a text without secrets."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secret_forms: list[str] = []
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str) -> None:
        """Add a secret: a value, or the content of a file that contains secrets."""
        forms = {
            form for part in _secret_parts(secret) for form in _encoded_forms(part) if len(form) >= MIN_SECRET_LENGTH
        }
        self._secret_forms = sorted(forms.union(self._secret_forms), key=lambda form: (-len(form), form))

    def __call__(self, text: str) -> str:
        for secret in self._secret_forms:
            text = text.replace(secret, REDACTED)
        text = _QUOTED_SECRET.sub(rf"\1{REDACTED}", text)
        return _LONG_RUN.sub(_redact_base64, redact_secret_patterns(text))


def _redact_base64(match: re.Match[str]) -> str:
    """Hides base64, but not `StatefulSet/postgres/postgres-0`: Kubernetes names contain no capital letters."""
    is_base64 = any(_MIXED_BASE64.fullmatch(part) for part in match[0].split("/")) or _LOWER_BASE64.fullmatch(match[0])
    return REDACTED if is_base64 else match[0]


def _secret_parts(secret: str) -> Iterator[str]:
    """The whole secret, each of its lines, and every string value if it is JSON."""
    yield secret
    yield secret.strip()
    yield from (line.strip() for line in secret.splitlines() if len(line.strip()) >= MIN_SECRET_LINE)
    try:
        yield from _strings(json.loads(secret))
    except (ValueError, RecursionError):
        return


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)


def _encoded_forms(part: str) -> Iterator[str]:
    """The text itself, and how it appears in JSON, in a repr, in a URL and in base64."""
    raw = part.encode("utf-8", "surrogatepass")
    yield from (part, json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1], repr(part)[1:-1])
    yield from (quote(raw, safe=""), quote(raw))
    yield from (base64.b64encode(raw).decode().rstrip("="), base64.urlsafe_b64encode(raw).decode().rstrip("="))
