"""Redaction: the one `Redactor` of a process removes known secrets in every encoding, and text that looks like one.

No pattern backtracks, because repetitions are possessive, and no attempt scans what another one scanned in vain: the
cost is linear in the length of the text.
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

from windlass.printable_text import MAX_MESSAGE_END, MAX_MESSAGE_START, one_line, printable, shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MIN_SECRET_LENGTH = 4  # replacing every "1" or "no" that is the value of an environment variable would garble the text
MIN_SECRET_LINE = 8  # characters; shorter lines of a multi-line secret, such as a single brace, are not secret
MIN_BASE64_PART = 8  # characters; a shorter piece of a base64 text also occurs by chance
REDACTED = "[redacted]"

_KEY = r"(?:secret|passw(?:or)?d|key)[\"']?\s?[=:]\s?"
_TOKEN_KEY = r"token(?:=|[\"']\s?:\s?)"  # noqa: S105 - `token: expired` is kept
_KEY_WORDS = ("secret", "passw", "key", "token")
SECRET_PATTERNS = tuple(
    (words, re.compile(pattern, re.IGNORECASE), replacement)
    for words, pattern, replacement in (
        (("-----begin",), r"-----BEGIN [^-]*+-----(?s:.)*?(?:-----END [^-]*+-----|\Z)", REDACTED),
        (("eyj",), r"(?<![a-z0-9])(?-i:eyJ)[a-z0-9_-]{8,}+(?:\.[a-z0-9_-]*+){0,2}", REDACTED),  # a JWT
        (("bearer", "basic"), r"\b(bearer|basic)\s++\S++", rf"\1 {REDACTED}"),
        (("://",), r"://(?:[^/\s@]*+@)+", f"://{REDACTED}@"),
        # The whole quoted value, because a password may contain spaces.
        (_KEY_WORDS, rf"({_KEY}|token[\"']?\s?[=:]\s?)(?:\"[^\"]*+\"|'[^']*+')", rf"\1{REDACTED}"),
        (_KEY_WORDS, rf"({_KEY}|{_TOKEN_KEY})[\"']?[^\s\"',}}]++", rf"\1{REDACTED}"),
    )
)
"""Each with words of which one is in every match: looking for these first is ten times as fast."""
HEX_RUN = re.compile(r"\b[0-9a-fA-F]{20,}+\b")
LONG_RUN = re.compile(r"[A-Za-z0-9_+/-]{24,}+={0,2}")
_COMMIT = re.compile(r"(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])")
_DIGEST_PREFIXES = ("sha256:", "sha512:")


class Redactor:
    """Callable that returns a text without secrets. Code that hands out a credential adds it first."""

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
        text = self._without_known_secrets(text)
        folded = text.casefold()
        for words, pattern, replacement in SECRET_PATTERNS:
            if any(word in folded for word in words):
                text = pattern.sub(replacement, text)
        return LONG_RUN.sub(_redact_base64, HEX_RUN.sub(_redact_hex, text))

    def printable(self, text: str) -> str:
        """The redacted text, printable. Redacted again if that removed something: it may have split a secret."""
        redacted = self(text)
        return redacted if redacted.isprintable() else self(printable(redacted))

    def one_line(self, text: str) -> str:
        """The redacted text, printable and with each run of whitespace as one space."""
        line = one_line(redacted := self(text))
        return line if line == redacted else self(line)

    def message(self, text: str, start: int = MAX_MESSAGE_START, end: int = MAX_MESSAGE_END) -> str:
        """A message of another program on one printable line: at most its first `start` and last `end` characters.

        It is redacted before it is cut, because half a secret is not recognized. A printable text that is not cut is
        returned as it is: what shows it redacts it. Of a long text only the ends are looked at, and what may be part of
        a secret there is left out.
        """
        if len(text) <= start + end and text.isprintable():
            return text
        margin = len(self._secret_forms[0]) if self._secret_forms else 0
        if len(text) <= 2 * (start + end + margin):
            return shortened(self.one_line(text), start, end)
        first, last = self.one_line(text[: 2 * start + margin]), self.one_line(text[-2 * end - margin :] if end else "")
        ends = first[: max(0, len(first) - margin)][:start], last[margin:][-end:] if end else ""
        return f"{ends[0].rstrip()}{' … ' if start and end else '…'}{ends[1].lstrip()}"

    def _without_known_secrets(self, text: str) -> str:
        """Replace all occurrences at once: of two that overlap, replacing one would leave the end of the other."""
        spans = sorted(span for form in self._secret_forms if form in text for span in _occurrences(form, text))
        pieces, end = [], 0
        for start, stop in spans:
            if start >= end:
                pieces += [text[end:start], REDACTED]
            end = max(end, stop)
        return "".join([*pieces, text[end:]])


def _occurrences(form: str, text: str) -> Iterator[tuple[int, int]]:
    start = text.find(form)
    while start >= 0:
        yield start, start + len(form)
        start = text.find(form, start + len(form))


def _redact_hex(match: re.Match[str]) -> str:
    """Hides long hexadecimal numbers, but neither commit hashes nor digests of images and charts."""
    is_digest = match.string.startswith(_DIGEST_PREFIXES, max(0, match.start() - 7))
    return match[0] if is_digest or _COMMIT.fullmatch(match[0]) else REDACTED


def _redact_base64(match: re.Match[str]) -> str:
    """Hides base64, but not `StatefulSet/postgres/postgres-0`: Kubernetes names contain no capital letters."""
    if match.string.startswith(_DIGEST_PREFIXES, max(0, match.start() - 7)):
        return match[0]
    run = _COMMIT.sub("", match[0])
    is_base64 = any(_is_mixed(part) for part in run.split("/")) or _is_lower_base64(run.rstrip("="))
    return REDACTED if is_base64 else match[0]


def _is_mixed(part: str) -> bool:
    return len(part) >= 8 and all(any(map(test, part)) for test in (str.islower, str.isupper, str.isdigit))


def _is_lower_base64(run: str) -> bool:
    return len(run) >= 24 and run.isalnum() and run.islower() and any(map(str.isdigit, run))


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
    """The text itself, and how it appears in JSON, in a repr, in either once more, in a URL and in base64."""
    raw = part.encode("utf-8", "surrogatepass")
    json_text = json.dumps(part, ensure_ascii=False)[1:-1]
    yield part
    for escaped in (json.dumps(part)[1:-1], json_text, repr(part)[1:-1], json_text.translate(_GO_ESCAPES)):
        yield from (
            escaped,
            repr(escaped)[1:-1],
            *(json.dumps(escaped, ensure_ascii=each)[1:-1] for each in (True, False)),
        )
    for form in (quote_plus(raw), *(quote(raw, safe=safe) for safe in _URL_SAFE)):
        yield from (form, _PERCENT_CODE.sub(lambda code: code[0].lower(), form))
    for alphabet in (None, b"-_"):
        padded = base64.b64encode(raw, alphabet).decode()
        yield from (padded, padded.rstrip("="))
        yield from (form for form in _base64_parts(raw, alphabet) if len(form) >= MIN_BASE64_PART)


_GO_ESCAPES = {ord(each): f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"}  # what Go's encoding/json escapes
_URL_SAFE = ("", "/", "$&+=:@", "$&+,;=")  # all, Python's default, and what Go keeps in a path and in user:password
_PERCENT_CODE = re.compile("%[0-9A-F]{2}")


def _base64_parts(raw: bytes, alphabet: bytes | None) -> Iterator[str]:
    """The characters that `raw` alone determines in the base64 of a longer text, for each offset within three bytes."""
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + raw, alphabet).decode()
        yield encoded[-(-offset * 8 // 6) : (offset + len(raw)) * 8 // 6]
