"""Keys and form are a contract; a line is one line; a secret stands in none."""

from __future__ import annotations

import io
import json
import logging
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import NOW
from tests.telemetry.runs import PLAN, events, outcomes, report
from windlass.core.platform.events import (
    Event,
    Level,
    NodeFinished,
    NodeStarted,
    Notice,
    PhaseStarted,
    PlanReady,
    RunPhase,
)
from windlass.core.platform.gates import Proof
from windlass.core.platform.outcomes import Outcome, Result
from windlass.core.platform.planning.plans import Unmet, Verb
from windlass.core.platform.reporting.reports import Report
from windlass.telemetry.logs import (
    MAX_MESSAGE_LENGTH,
    EventLog,
    LogFormat,
    LogOptions,
    create_logger,
    forward_library_logs,
)
from windlass.telemetry.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterable

KEYS = ["timestamp", "level", "action", "phase", "component", "message"]
TRACE = {"trace_id": "a" * 32, "span_id": "b" * 16}


def logged(told: Iterable[Event | Report], *, secrets: Iterable[str] = (), now: Any = NOW, **options: Any) -> list[str]:
    stream = io.StringIO()
    wanted = LogOptions(**{"action": "deploy", "level": Level.DEBUG, "format": LogFormat.TEXT, **options})
    log = EventLog(create_logger(stream, wanted, lambda: now, Redactor(secrets)))
    for each in told:
        log.finish(each) if isinstance(each, Report) else log.emit(each)
    written = stream.getvalue()
    assert written.endswith("\n") or not written
    return written.split("\n")[:-1]


def read(line: str) -> dict[str, Any]:
    found = json.loads(line)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(("trace", "keys"), [({}, KEYS), (TRACE, [*KEYS, *TRACE])])
def test_json_has_exactly_the_keys_of_the_contract(trace: dict[str, str], keys: list[str]) -> None:
    lines = [read(line) for line in logged([*events(), report()], format=LogFormat.JSON, **trace)]
    assert len(lines) == len(events()) + len(PLAN.steps) + 2
    for line in lines:
        assert list(line) == keys
        assert all(isinstance(value, str) for value in line.values())
        assert trace.items() <= line.items()


def test_one_line_of_json() -> None:
    [_, line] = logged([PhaseStarted(RunPhase.RUN), Notice(Level.WARN, 'a "b"\n…', "ceph")], format=LogFormat.JSON)
    assert line == (
        '{"timestamp": "2026-11-15T21:00:00.000Z", "level": "warn", "action": "deploy", "phase": "run", '
        '"component": "ceph", "message": "a \\"b\\"\\n\\u2026"}'
    )


COUNTS = "1 failed, 1 interrupted, 1 skipped, 1 succeeded"
STARTED = "2026-11-15T21:00:00.000Z"


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (PhaseStarted(RunPhase.CONNECT), "INFO [deploy/connect/-] connect begins"),
        (Notice(Level.INFO, "it began"), "INFO [deploy/-/-] it began"),
        (Notice(Level.ERROR, "lost", "ceph"), "ERROR [deploy/-/ceph] lost"),
        (NodeStarted("ceph", Verb.SYNC), "INFO [deploy/-/ceph] sync begins"),
        (NodeStarted("ceph", Verb.REMOVE, 2), "WARN [deploy/-/ceph] remove begins, attempt 2"),
        (events()[4], "DEBUG [deploy/-/ceph] waits: Progressing: it is Degraded"),
        (
            NodeFinished(outcomes()[0]),
            f"INFO [deploy/-/ceph] succeeded after 1 min: Healthy at 111111111111 ({Proof.NEW_REVISION})",
        ),
        (
            NodeFinished(outcomes()[1]),
            "ERROR [deploy/-/postgres] failed after 30 s and 3 attempts: Degraded: it is Degraded",
        ),
        (NodeFinished(outcomes()[2]), "WARN [deploy/-/keycloak] skipped because of postgres"),
        (NodeFinished(outcomes()[3]), "WARN [deploy/-/ready] interrupted"),
        (NodeFinished(Outcome("ceph", Result.UNCHANGED)), "DEBUG [deploy/-/ceph] unchanged"),
        (NodeFinished(Outcome("ceph", Result.NOT_STARTED)), "WARN [deploy/-/ceph] not started"),
        (
            report(),
            f"WARN [deploy/-/-] partial after 1 min 30 s: {COUNTS}; 12 reads, 3 writes, 1 refreshes; exit code 2",
        ),
    ],
)
def test_the_text_of_what_happened(event: Event | Report, line: str) -> None:
    assert logged([event])[-1] == f"{STARTED} {line}"


def test_a_plan_is_told_by_its_size_and_by_what_stands_in_its_way() -> None:
    plan = replace(PLAN, steps=PLAN.steps[:1], unmet=(Unmet("vault", ("ceph", "ready"), "it is Degraded"),))
    assert [line.removeprefix(f"{STARTED} ") for line in logged([PlanReady(plan)])] == [
        "ERROR [deploy/-/vault] needed by ceph, ready and out of scope: it is Degraded",
        "DEBUG [deploy/-/ceph] planned: sync: it does not exist",
        "INFO [deploy/-/-] 1 steps, 0 unchanged, estimated 3 min",
    ]


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        (Level.DEBUG, {"DEBUG", "INFO", "WARN", "ERROR"}),
        (Level.INFO, {"INFO", "WARN", "ERROR"}),
        (Level.WARN, {"WARN", "ERROR"}),
        (Level.ERROR, {"ERROR"}),
    ],
)
def test_a_level_shows_itself_and_what_is_worse(level: Level, shown: set[str]) -> None:
    assert {line.split()[1] for line in logged(events(), level=level)} == shown


def test_times_are_utc_with_milliseconds() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=timezone(timedelta(hours=2)))
    [line] = logged([Notice(Level.INFO, "now")], now=moment)
    assert line.startswith("2026-01-02T01:04:05.678Z INFO ")


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            "ok\n2026-11-15T21:00:00Z INFO [deploy/run/-] all is well",
            r"ok\n2026-11-15T21:00:00Z INFO [deploy/run/-] all",
        ),
        ("\x1b[2Jgone\r\x00", r"\x1b[2Jgone\r\x00"),
        ("a\u2028b\x85c\u202ed\udcff", r"a\u2028b\x85c\u202ed\udcff"),
        ("täglich 100 % …", "täglich 100 % …"),
    ],
)
def test_nobody_writes_a_line_but_us(message: str, shown: str) -> None:
    [line] = logged([Notice(Level.INFO, message)])
    assert f"[deploy/-/-] {shown}" in line
    assert line.isprintable()


@settings(deadline=None)
@given(st.text(st.characters(), max_size=50))
def test_any_message_is_one_line_in_both_forms(message: str) -> None:
    assert len(logged([Notice(Level.INFO, message)])) == 1
    [line] = logged([Notice(Level.INFO, message)], format=LogFormat.JSON)
    assert line.isascii()
    read(line)["message"].encode("utf-8")


def test_a_long_message_is_cut_after_secrets_are_hidden() -> None:
    said = "x " * (MAX_MESSAGE_LENGTH // 2 - 3) + "correct-horse " * 5
    [line] = logged([Notice(Level.INFO, said)], secrets=["correct-horse"], format=LogFormat.JSON)
    message = read(line)["message"]
    assert len(message) == MAX_MESSAGE_LENGTH
    assert "corr" not in message
    assert message.endswith("…")


@settings(deadline=None)
@given(
    secret=st.text(st.characters(codec="utf-8"), min_size=4).filter(lambda secret: len(secret.strip()) >= 4),
    around=st.text(st.characters(codec="utf-8"), max_size=10),
    form=st.sampled_from(LogFormat),
)
def test_a_secret_stands_in_no_line(secret: str, around: str, form: LogFormat) -> None:
    """Compared with a run in which nobody said it: our own words may hold a secret that is as simple as they are."""

    def messages(said: str) -> list[str]:
        lines = logged([*events(said), report(said)], secrets=[secret], format=form)
        return [read(line)["message"] if form is LogFormat.JSON else line for line in lines]

    for told, quiet in zip(messages(f"{around}{secret}{around}"), messages(around * 2), strict=True):
        assert told.replace("[redacted]", "").count(secret) <= quiet.replace("[redacted]", "").count(secret)


def test_what_libraries_log_is_told_too_and_only_meanwhile() -> None:
    told: list[Event] = []
    library = logging.getLogger("some.library")
    with forward_library_logs(told.append):
        library.info("not this")
        library.warning("slow: %s", "x")
        try:
            raise KeyError("gone")
        except KeyError:
            library.exception("broken")
    before = list(logging.getLogger().handlers)
    assert told == [
        Notice(Level.WARN, "some.library: slow: x"),
        Notice(Level.ERROR, "some.library: broken (KeyError: 'gone')"),
    ]
    with forward_library_logs(told.append):
        pass
    assert logging.getLogger().handlers == before
