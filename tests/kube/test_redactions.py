"""Known secrets in every form they come back in, and what looks like one; names people search for stay."""

from __future__ import annotations

import base64
import json
import re
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kube.pattern_steps import backtracking_parts, count_steps, own_adversaries
from tests.secret_forms import FORMS
from windlass.kube import api_errors
from windlass.kube.redactions import HEX_RUN, LONG_RUN, SECRET_PATTERNS, Redactor
from windlass.printable_text import CI_COMMAND, ESCAPE_SEQUENCE, MAX_MESSAGE_END, MAX_MESSAGE_LENGTH, MAX_MESSAGE_START

KUBECONFIG = base64.b64encode(b"apiVersion: v1\nkind: Config\nusers: [{name: me, user: {token: T0ken}}]\n").decode()
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJtZSJ9.c2lnbmF0dXJl"
COMMIT = "3f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1a"
DIGEST = f"sha256:{COMMIT}0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("Authorization: Bearer abc.def", "Authorization: Bearer [redacted]"),
        ("Authorization: Basic bWU6cHc=", "Authorization: Basic [redacted]"),
        ("authorization: basic YWJj", "authorization: basic [redacted]"),
        ("clone https://me:p@ss@git.example/x", "clone https://[redacted]@git.example/x"),
        ('{"password": "two words", "a": 1}', '{"password": [redacted], "a": 1}'),
        ('{"access_token":"abc"}', '{"access_token":[redacted]}'),
        ("token='two words' failed", "token=[redacted] failed"),
        ("token=abc", "token=[redacted]"),
        ("--client-secret=abc failed", "--client-secret=[redacted] failed"),
        ("password: hunter2", "password: [redacted]"),
        (f"KUBECONFIG_DATA is {KUBECONFIG}", "KUBECONFIG_DATA is [redacted]"),
        ("key AKIAIOSFODNN7EXAMPLEwJalrXUtnFEMI", "key [redacted]"),
        ("sent 3f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c", "sent [redacted]"),
        (f"sent {COMMIT}0", "sent [redacted]"),
        ("sent zz9a8b7c6d5e4f3a2b1c0d9e8f7a", "sent [redacted]"),
        ("sum deadbeefdeadbeefdeadbeef", "sum [redacted]"),
        (f"got {JWT}!", "got [redacted]!"),
        ("got eyJhbGciOiJSUzI1NiJ9.cut", "got [redacted]"),
        ("-----BEGIN EC PRIVATE KEY-----\nabc\n-----END EC PRIVATE KEY-----\nbad", "[redacted]\nbad"),
        ("-----BEGIN EC PRIVATE KEY-----\nabc\n", "[redacted]"),
    ],
)
def test_what_looks_like_a_secret_is_redacted(text: str, redacted: str) -> None:
    assert Redactor()(text) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "StatefulSet/monitoring/prometheus-kube-prometheus-stack-prometheus-0 is Progressing",
        "pod kube-prometheus-stack-grafana-6d4f9b7c8d-x2v9q restarts",
        "at 1f3a9c2b4d5e, desired is 0123456789ab",
        "/config/health/ceph.rook.io_CephCluster.lua:12: attempt to index nil",
        "CustomResourceDefinition/cephobjectstoreusers.ceph.rook.io is missing",
        "run 2f1c7f4e-9a54-4c1a-8f0e-6f3b2a1c0d9e holds the lock",
        "internal-authentication-service-unavailable",
        "token: expired",
        "region mars-7 is not there",
    ],
)
def test_names_stay(text: str) -> None:
    assert Redactor(["hunter2"])(text) == text


@pytest.mark.parametrize(
    "text",
    [
        f"synced to {COMMIT}",
        f"Revision-{COMMIT}, charts/{COMMIT}/web",
        f"image registry.example/web@{DIGEST} is pulled",
        DIGEST,
    ],
)
def test_commit_hashes_and_digests_stay(text: str) -> None:
    assert Redactor()(text) == text


def test_a_known_secret_is_redacted_even_if_it_looks_like_a_commit() -> None:
    assert Redactor([COMMIT])(f"Bearer token is {COMMIT}") == "Bearer [redacted] is [redacted]"


def test_a_file_of_secrets_is_known_by_its_parts() -> None:
    registry = json.dumps({"auths": {"r.example": {"username": "bob", "password": "correct horse", "auth": "Ym9i"}}})
    redact = Redactor([registry, "first line here\nsecond line here\n", '{"port": 5432, "hosts": ["db.internal"]}'])
    assert redact("5432 at db.internal") == "5432 at [redacted]"
    assert redact("correct horse, Ym9i, bob") == "[redacted], [redacted], bob"
    assert redact("read: second line here") == "read: [redacted]"


def test_what_is_too_short_to_be_a_secret_stays() -> None:
    assert Redactor(["", "abc", "\n"])("abc\n") == "abc\n"


def test_of_two_secrets_that_overlap_nothing_stays() -> None:
    assert Redactor(["hunter-two", "two-horses"])("a hunter-two-horses b") == "a [redacted] b"


def test_one_line_has_no_escapes_and_no_control_characters() -> None:
    assert Redactor().one_line("one\n\n two\x1b[31m three\x1b[0m\x07\n") == "one two three"


@pytest.mark.parametrize("split", ["\x1b[0m", "\u200b"])
def test_a_secret_that_escapes_take_apart_is_redacted(split: str) -> None:
    redact = Redactor(["correct-horse"])
    text = f"a correct{split}-horse b"
    for line in (redact.printable(text), redact.one_line(text), redact.message(text), redact.message(text * 9_999)):
        assert "correct-horse" not in line
    assert redact.one_line(text) in {"a [redacted] b", "a correct -horse b"}


@pytest.mark.parametrize("cut", range(30))
@pytest.mark.parametrize("filler", ["x ", "correct-horse "])
def test_a_message_is_redacted_before_it_is_cut(cut: int, filler: str) -> None:
    """The secret straddles a place where the message is cut; the filler that is redacted makes the rest move up."""
    redact = Redactor(["correct-horse", "a-longer-secret-than-that"])
    for place in (MAX_MESSAGE_START, 2 * MAX_MESSAGE_START, 2 * MAX_MESSAGE_END):
        before = (filler * place)[: place - cut].rpartition(" ")[0].ljust(place - cut, ".")
        for after in ("", "y " * 9 * MAX_MESSAGE_LENGTH):
            for text in (f"{before}correct-horse {after}", f"{after} correct-horse{before[::-1]}"):
                line = redact(redact.message(text, MAX_MESSAGE_START, MAX_MESSAGE_END))
                for part in ("corr", "orse"):
                    assert part not in line.replace("esroh-tcerroc", "")
                assert len(line) <= MAX_MESSAGE_LENGTH + 3


def test_a_message_is_one_line_that_shows_the_start_and_the_end() -> None:
    redact = Redactor(["correct-horse"])
    assert redact.message("  as it  is ") == "  as it  is "
    assert redact.message("two\nlines of correct-horse\x1b[0m") == "two lines of [redacted]"
    for middle in ("x " * 9_000, "x " * 5_000_000):
        line = redact.message(f"helm failed: {middle} correct-horse: no such file\n")
        assert line.startswith("helm failed: x x")
        assert line.endswith("x x [redacted]: no such file")
        assert MAX_MESSAGE_LENGTH - 9 <= len(line) <= MAX_MESSAGE_LENGTH + 3
    assert redact.message("x " * 50_000, 9, 0) == "x x x x x…"
    assert redact.message("x " * 50_000, 0, 8) == "…x x x x"


@settings(deadline=None)
@given(
    secret=st.text(st.characters(codec="utf-8"), min_size=4).filter(lambda secret: len(secret.strip()) >= 4),
    around=st.text(st.characters(codec="utf-8")),
    form=st.sampled_from(sorted(FORMS)),
)
def test_a_known_secret_never_shows(secret: str, around: str, form: str) -> None:
    written = FORMS[form](secret)
    shown = Redactor([secret])(f"{around}{written}{around}")
    assert written not in shown.replace("[redacted]", "\0")


@given(before=st.binary(max_size=7), after=st.binary(max_size=7), secret=st.binary(min_size=12).map(bytes.hex))
def test_a_known_secret_inside_a_longer_base64_text_never_shows(before: bytes, after: bytes, secret: str) -> None:
    whole = base64.b64encode(before + secret.encode() + after).decode()
    shown = Redactor([secret])(" ".join(whole))  # spaced out, it is not even the same text
    assert shown == " ".join(whole)
    shown = Redactor([secret])._without_known_secrets(whole).replace("[redacted]", "")
    assert len(shown) <= -(-(len(before) + len(after)) * 8 // 6) + 6


PATTERNS = [
    *(pattern for _, pattern, _ in SECRET_PATTERNS),
    *(HEX_RUN, LONG_RUN, api_errors._CONFLICTING_MANAGER, ESCAPE_SEQUENCE, CI_COMMAND),
]
MEGABYTE = 1_000_000
MAX_STEPS_PER_CHARACTER = 60
ADVERSARIES = [
    "-----BEGIN A-----b-----END c-",
    "-eyJabcdefgh.ij.",
    "bearer  x",
    "basic\t",
    "://a:b@",
    "password='x' token=\"",
    "key=",
    "secret: '",
    "token='",
    "passwd",
    "0123456789abcdef012g",
    "aB3/",
    "sha256:00000000000000000000",
    'conflict with "\\',
    "\x1b[0; /",
    "\x1b]8;;",
    " \t:section_start",
    "##vso",
]


IDS = [pattern.pattern[:24] for pattern in PATTERNS]


def growth(pattern: re.Pattern[str], sizes: tuple[int, int] = (100, 200)) -> dict[str, tuple[int, int]]:
    """The steps for each adversary at both sizes: repeated, and its last character repeated after it."""
    parts = [adversary[:length] for adversary in ADVERSARIES for length in range(1, len(adversary) + 1)]
    texts = {*zip(parts, parts, strict=True)} | {
        (part, tail) for part in own_adversaries(pattern) for tail in (part, part[-1])
    }
    return {
        f"{part!r} and then {tail!r} repeated": cast(
            "tuple[int, int]", tuple(count_steps(pattern, (part + tail * size)[:size]) for size in sizes)
        )
        for part, tail in texts
    }


@pytest.mark.parametrize("pattern", PATTERNS, ids=IDS)
def test_the_steps_of_a_pattern_grow_with_the_text_not_with_its_square(pattern: re.Pattern[str]) -> None:
    for text, (few, many) in growth(pattern).items():
        assert many <= 2.5 * few + 60, text


@pytest.mark.parametrize("pattern", PATTERNS, ids=IDS)
def test_no_pattern_backtracks(pattern: re.Pattern[str]) -> None:
    assert backtracking_parts(pattern) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("pattern", PATTERNS, ids=IDS)
def test_a_megabyte_of_its_worst_prefix_takes_a_pattern_a_few_steps_per_character(pattern: re.Pattern[str]) -> None:
    worst = max(own_adversaries(pattern), key=lambda part: count_steps(pattern, (part * 200)[:200]))
    for tail in {worst, worst[-1]}:
        text = (worst + tail * MEGABYTE)[:MEGABYTE]
        assert count_steps(pattern, text) <= MAX_STEPS_PER_CHARACTER * MEGABYTE, (worst, tail)


def test_a_pattern_that_backtracks_is_noticed() -> None:
    assert backtracking_parts(re.compile("(?:a|b[cd]*)+e")) != []
    assert backtracking_parts(re.compile("x[cd]*+e|[cd]*")) == []


def test_the_prefixes_of_a_pattern_show_that_it_scans_again() -> None:
    """A text of what opens a command of a terminal, and nothing else, was scanned to its end from each character."""
    pattern = re.compile(r"(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)")
    assert any(many > 3.5 * few for few, many in growth(pattern).values())


def test_the_count_of_steps_notices_a_pattern_that_scans_again() -> None:
    pattern = re.compile(r"\beyJ[\w-]+\.")
    assert count_steps(pattern, "-eyJ" * 200) > 3.5 * count_steps(pattern, "-eyJ" * 100)


@pytest.mark.parametrize("adversary", ADVERSARIES, ids=lambda adversary: adversary[:12])
def test_a_megabyte_of_an_adversary_is_redacted(adversary: str) -> None:
    redact = Redactor(["hunter2", "aaaa" * 300])
    for prefix in {adversary, adversary[: len(adversary) // 2], adversary[0]}:
        assert "hunter2" not in redact(prefix * (1_000_000 // len(prefix)) + "hunter2")
