"""The forms in which a secret comes back: as it is, and as the programs between it and us encode it."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Callable


def go_json(secret: str) -> str:
    """As Go's encoding/json writes it."""
    escaped = json.dumps(secret, ensure_ascii=False)[1:-1]
    return re.sub("[<>&\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", escaped)


FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "json": lambda secret: json.dumps(secret)[1:-1],
    "go json": go_json,
    "json in json": lambda secret: json.dumps(go_json(secret))[1:-1],
    "json in a repr": lambda secret: repr(go_json(secret))[1:-1],
    "repr": lambda secret: repr(secret)[1:-1],
    "url": lambda secret: quote(secret, safe=""),
    "url path": quote,
    "url query": quote_plus,
    "url in lower case": lambda secret: re.sub("%..", lambda code: code[0].lower(), quote(secret, safe="")),
    "base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "base64 for URLs": lambda secret: base64.urlsafe_b64encode(secret.encode()).decode(),
}


def written_forms(secrets: list[str]) -> list[str]:
    """Every secret in every form, each once."""
    return list(dict.fromkeys(form(secret) for secret in secrets for form in FORMS.values()))
