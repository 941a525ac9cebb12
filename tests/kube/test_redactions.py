"""Foreign text made fit for our messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.kube.redactions import OUTPUT_EXCERPT_LENGTH, redacted_excerpt

JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJtZSJ9.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("error: no such profile\n", "error: no such profile"),
        ("one\n\n two\x1b[31m three\x1b[0m\x07\n", "one two three"),
        (f"got {JWT}!", "got [redacted]!"),
        ("got eyJhbGciOiJSUzI1NiJ9.cut", "got [redacted]"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer [redacted]"),
        ("authorization: basic YWJj", "authorization: basic [redacted]"),
        ("GET https://me:pw@host/x", "GET https://[redacted]@host/x"),
        ("--client-secret=abc failed", "--client-secret=[redacted] failed"),
        ("password: hunter2", "password: [redacted]"),
        ('{"password": "hunter2", "a": 1}', '{"password": [redacted]", "a": 1}'),
        ("token=abc", "token=[redacted]"),
        ('{"access_token":"abc"}', '{"access_token":[redacted]"}'),
        ("token: expired", "token: expired"),
        ("key AKIAIOSFODNN7EXAMPLEwJalrXUtnFEMI", "key [redacted]"),
        ("id 0123456789abcdef01234567", "id [redacted]"),
        ("sum deadbeefdeadbeefdeadbeef", "sum [redacted]"),
        ("-----BEGIN EC PRIVATE KEY-----\nabc\n-----END EC PRIVATE KEY-----\nbad", "[redacted] bad"),
        ("-----BEGIN EC PRIVATE KEY-----\nabc\n", "[redacted]"),
        ("region mars-7 is not there", "region [redacted] is not there"),
        (
            "exit 42: internal-authentication-service-unavailable",
            "exit 42: internal-authentication-service-unavailable",
        ),
        ("", ""),
        ("\udcff", "???"),
    ],
)
def test_what_looks_like_a_secret_is_hidden(said: str, shown: str) -> None:
    output = said.encode("utf-8", "replace") if "\udcff" not in said else b"\xff\xfe\xfd"
    assert redacted_excerpt(output, ["mars-7", "42", ""]) == shown.replace("???", "\ufffd" * 3)


def test_only_the_end_is_shown() -> None:
    shown = redacted_excerpt(b"begin " + b"word " * 1000 + b"end", [])
    assert shown.startswith("…")
    assert shown.endswith("word end")
    assert len(shown) == OUTPUT_EXCERPT_LENGTH


@given(st.binary(), st.text(min_size=4))
def test_a_known_secret_never_shows(output: bytes, secret: str) -> None:
    told = output + secret.encode("utf-8", "replace") + output
    if secret.encode("utf-8", "replace") == secret.encode("utf-8", "ignore"):
        assert secret not in redacted_excerpt(told, [secret]).replace("[redacted]", "")
