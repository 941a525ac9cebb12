"""Redaction of secrets in output: known secrets in every encoding, and text that looks like a secret."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from windlass.kube.redactions import HIDDEN, SHORTEST_SECRET, without_secret_shapes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SHORTEST_LINE = 8  # characters; shorter lines of a multi-line secret, such as a single brace, are not secret

_QUOTED = re.compile(
    r"((?:secret|passw(?:or)?d|token|key)[\"']?\s?[=:]\s?)(?:\"[^\"]*\"|'[^']*')", re.IGNORECASE
)  # the whole quoted value, because a password may contain spaces
_LONG_RUN = re.compile(r"[\w+/-]{24,}={0,2}")
_MIXED = re.compile(r"(?=[^/]*[a-z])(?=[^/]*[A-Z])(?=[^/]*[0-9])[^/]{8,}")
_LOWER = re.compile(r"(?=.*[a-z])(?=.*[0-9])[a-z0-9]{24,}=*")


class Redactions:
    """Callable that returns a text without secrets."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known: list[str] = []
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str) -> None:
        """Add a secret: a value, or the content of a file that contains secrets."""
        forms = {form for part in _parts(secret) for form in _forms(part) if len(form) >= SHORTEST_SECRET}
        self._known = sorted(forms.union(self._known), key=lambda form: (-len(form), form))

    def __call__(self, text: str) -> str:
        for secret in self._known:
            text = text.replace(secret, HIDDEN)
        text = _QUOTED.sub(rf"\1{HIDDEN}", text)
        return _LONG_RUN.sub(_run_to_show, without_secret_shapes(text))


def _run_to_show(run: re.Match[str]) -> str:
    """Hides base64, but not `StatefulSet/postgres/postgres-0`: Kubernetes names contain no capital letters."""
    is_base64 = any(_MIXED.fullmatch(part) for part in run[0].split("/")) or _LOWER.fullmatch(run[0])
    return HIDDEN if is_base64 else run[0]


def _parts(secret: str) -> Iterator[str]:
    """The whole secret, each of its lines, and every string value if it is JSON."""
    yield secret
    yield secret.strip()
    yield from (line.strip() for line in secret.splitlines() if len(line.strip()) >= SHORTEST_LINE)
    try:
        yield from _texts(json.loads(secret))
    except (ValueError, RecursionError):
        return


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def _forms(part: str) -> Iterator[str]:
    """The text itself, and how it appears in JSON, in a repr, in a URL and in base64."""
    raw = part.encode("utf-8", "surrogatepass")
    yield from (part, json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1], repr(part)[1:-1])
    yield from (quote(raw, safe=""), quote(raw))
    yield from (base64.b64encode(raw).decode().rstrip("="), base64.urlsafe_b64encode(raw).decode().rstrip("="))
