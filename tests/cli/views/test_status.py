"""The status as text: about ten lines, whatever there is to say."""

from __future__ import annotations

import io

from tests.builders import NOW, at
from windlass.cli.views.live import StatusScreen
from windlass.cli.views.status import status_document, status_rows, status_text
from windlass.core.platform.cluster_status import (
    ActiveApplication,
    ClusterStatus,
    FailedApplication,
    LockStatus,
    RootStatus,
)
from windlass.core.platform.identity import ClusterIdentity
from windlass.core.platform.lock_holders import LockHolder
from windlass.core.platform.model.snapshots import SyncStatus

CAUSE = f"container main waits, {'x' * 500} no space left on device"
BUSY = ClusterStatus(
    server="https://k8s.example.org:6443",
    identity=ClusterIdentity("staging", "shop"),
    root=RootStatus("argocd/platform-root", ("1f3a9c2d4e5f6a7b",), ("main",), SyncStatus.SYNCED),
    lock=LockStatus(LockHolder("7ae2c1d0-0000", "ada@build-1 (https://ci/42)"), at(-125)),
    applications=1000,
    health={"Healthy": 900, "Progressing": 60, "Degraded": 40},
    sync={"Synced": 990, "OutOfSync": 10},
    active=tuple(
        ActiveApplication(f"app-{number}", "is syncing", by="run 7ae2c1d0-0000", since=at(-number))
        for number in range(60)
    ),
    failed=tuple(FailedApplication(f"bad-{number}", "Degraded", CAUSE, at(-3600)) for number in range(40)),
)
SHOWN = f"""\
platform      shop, environment staging, server https://k8s.example.org:6443
applications  1000: 900 Healthy, 60 Progressing, 40 Degraded; 990 Synced, 10 OutOfSync
failed 40     bad-0  Degraded for 1 h 0 min: {CAUSE}
              bad-1  Degraded for 1 h 0 min: {CAUSE}
              and 38 more
changing 60   app-0  is syncing for 0 s, by run 7ae2c1d0
              app-1  is syncing for 1 s, by run 7ae2c1d0
              and 58 more
lock          held by ada@build-1 (https://ci/42), run 7ae2c1d0 for 2 min 5 s, since 2026-11-15 20:57:55Z
root          argocd/platform-root at 1f3a9c2d4e5f (main), Synced"""


def test_a_thousand_applications_are_ten_lines_with_uncut_causes() -> None:
    assert status_text(BUSY, NOW) == SHOWN


def test_an_empty_cluster_says_so() -> None:
    assert status_text(ClusterStatus("https://a"), NOW).splitlines() == [
        "platform      not recorded, server https://a",
        "applications  none",
        "lock          free: no deploy or teardown is running",
    ]


def test_what_is_not_known_is_not_called_free() -> None:
    text = status_text(ClusterStatus("https://a", is_lock_known=False, notices=("no right",)), NOW)
    assert "platform      unknown" in text
    assert "lock          unknown" in text
    assert text.endswith("notice        no right")


def test_a_dead_holder_is_told() -> None:
    lock = LockStatus(LockHolder("7"), is_abandoned=True)
    assert "held by run 7; not renewed: that run has died" in status_text(ClusterStatus("https://a", lock=lock), NOW)


def test_a_failure_without_a_cause_does_not_repeat_itself() -> None:
    failed = (FailedApplication("web", "Degraded"),)
    text = status_text(ClusterStatus("https://a", applications=2, failed=failed), NOW)
    assert "failed 1      web  Degraded: Argo CD gives no reason" in text


def test_the_document_has_every_application() -> None:
    document = status_document(BUSY, NOW)
    assert (document["kind"], document["time"], document["server"]) == ("Status", "2026-11-15T21:00:00Z", BUSY.server)
    assert (len(document["active"]), len(document["failed"])) == (60, 40)
    assert document["lock"]["holder"]["runId"] == "7ae2c1d0-0000"
    assert document["identity"] == {"environment": "staging", "platform": "shop"}


def test_a_narrow_terminal_wraps_beside_the_labels_and_cuts_nothing() -> None:
    stream = io.StringIO()
    StatusScreen(stream, {"COLUMNS": "60", "LINES": "24", "TERM": "xterm"}).print(status_rows(BUSY, NOW))
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 60
    assert "".join(stream.getvalue().split()).count("x" * 500) == 2
    assert {line[:14].strip() for line in lines} == {
        "platform",
        "applications",
        "failed 40",
        "changing 60",
        "lock",
        "root",
        "",
    }
