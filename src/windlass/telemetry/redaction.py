"""Secrets hidden in whatever is told: known ones in each form they come back in, and what looks like one."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from windlass.kube.redactions import HIDDEN, SHORTEST_SECRET, without_secret_shapes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SHORTEST_LINE = 8  # of a secret with several lines: a brace on a line of its own is none

_QUOTED = re.compile(
    r"((?:secret|passw(?:or)?d|token|key)[\"']?\s?[=:]\s?)(?:\"[^\"]*\"|'[^']*')", re.IGNORECASE
)  # whole, for a password may have spaces
_LONG_RUN = re.compile(r"[\w+/-]{24,}={0,2}")
_MIXED = re.compile(r"(?=[^/]*[a-z])(?=[^/]*[A-Z])(?=[^/]*[0-9])[^/]{8,}")
_LOWER = re.compile(r"(?=.*[a-z])(?=.*[0-9])[a-z0-9]{24,}=*")


class Redactions:
    """Called with a text, it gives the text to show."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known: list[str] = []
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str) -> None:
        """A value, or the content of a file with one."""
        forms = {form for part in _parts(secret) for form in _forms(part) if len(form) >= SHORTEST_SECRET}
        self._known = sorted(forms.union(self._known), key=lambda form: (-len(form), form))

    def __call__(self, text: str) -> str:
        for secret in self._known:
            text = text.replace(secret, HIDDEN)
        text = _QUOTED.sub(rf"\1{HIDDEN}", text)
        return _LONG_RUN.sub(_run_to_show, without_secret_shapes(text))


def _run_to_show(run: re.Match[str]) -> str:
    """Base64 is hidden. `StatefulSet/postgres/postgres-0` is none: a name in Kubernetes has no capitals."""
    is_base64 = any(_MIXED.fullmatch(part) for part in run[0].split("/")) or _LOWER.fullmatch(run[0])
    return HIDDEN if is_base64 else run[0]


def _parts(secret: str) -> Iterator[str]:
    """The whole; of JSON every value in it, of several lines each."""
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
    """As it is, and as it stands in JSON, in a repr, in a URL and in base64."""
    raw = part.encode("utf-8", "surrogatepass")
    yield from (part, json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1], repr(part)[1:-1])
    yield from (quote(raw, safe=""), quote(raw))
    yield from (base64.b64encode(raw).decode().rstrip("="), base64.urlsafe_b64encode(raw).decode().rstrip("="))
