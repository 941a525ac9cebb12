"""The status of a cluster as about ten lines, or as a JSON document. Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from windlass.cli.views.live_rows import Style, StyledText
from windlass.core.platform.documents import API_VERSION, to_json
from windlass.core.platform.gate_values import abbreviate
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import SyncStatus
from windlass.core.platform.reporting.text_layout import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from windlass.cli.views.live_rows import Row
    from windlass.core.platform.cluster_status import ActiveApplication, ClusterStatus, FailedApplication, LockStatus

KIND = "Status"
MAX_APPLICATIONS = 3  # shown of each list
LABEL_WIDTH = 14
RUN_ID_LENGTH = 8  # characters that tell two runs apart; JSON has the whole ID
_HEALTH_STYLES = {
    Health.HEALTHY: Style.GOOD,
    Health.PROGRESSING: Style.BUSY,
    Health.DEGRADED: Style.BAD,
    Health.UNKNOWN: Style.BAD,
    Health.MISSING: Style.LATE,
    Health.SUSPENDED: Style.LATE,
    Health.FAILED: Style.BAD,
}


def status_document(status: ClusterStatus, now: datetime) -> dict[str, Any]:
    """All applications that change or failed, also those that the lines leave out."""
    return {"apiVersion": API_VERSION, "kind": KIND, "time": to_json(now), **to_json(status)}


def status_text(status: ClusterStatus, now: datetime) -> str:
    return "\n".join("".join(piece.text for piece in row).rstrip() for row in status_rows(status, now))


def status_rows(status: ClusterStatus, now: datetime) -> list[Row]:
    """About ten rows, however many applications there are. `now` is the server's time."""
    return [
        _row("platform", f"{_identity_text(status)}, server {status.server}", Style.BOLD),
        _counts_row(status),
        *_list_rows("failed", Style.BAD, status.failed, [_failed_text(each, now) for each in _first(status.failed)]),
        *_list_rows("changing", Style.BUSY, status.active, [_active_text(each, now) for each in _first(status.active)]),
        _lock_row(status, now),
        *([_row("root", _root_text(status))] if status.applications else []),
        *(_row("notice", notice, Style.LATE) for notice in status.notices),
    ]


def _first(applications: Sequence[Any]) -> Sequence[Any]:
    """The applications that are shown; the last line is for the number of the others."""
    return applications if len(applications) <= MAX_APPLICATIONS else applications[: MAX_APPLICATIONS - 1]


def _row(label: str, text: str, style: Style = Style.PLAIN) -> Row:
    return (StyledText(f"{label:<{LABEL_WIDTH}}"), StyledText(text, style))


def _identity_text(status: ClusterStatus) -> str:
    identity = status.identity
    if identity is None:
        return "not recorded" if status.is_lock_known else "unknown"
    return f"{identity.platform or '(no name)'}, environment {identity.environment or '(no name)'}"


def _root_text(status: ClusterStatus) -> str:
    root = status.root
    if root is None:
        return "none: windlass has created no root Application here"
    targets = ", ".join(root.target_revisions)
    return f"{root.name} at {abbreviate(root.revisions)} ({targets}), {root.sync}"


def _counts_row(status: ClusterStatus) -> Row:
    if not status.applications:
        return _row("applications", "none")
    health = [StyledText(f"{count} {word}", _HEALTH_STYLES[Health(word)]) for word, count in status.health.items()]
    sync = [
        StyledText(f"{count} {word}", Style.PLAIN if word == SyncStatus.SYNCED else Style.LATE)
        for word, count in status.sync.items()
    ]
    number = StyledText(f"{status.applications}: ")
    return (*_row("applications", "")[:1], number, *_joined(health), StyledText("; "), *_joined(sync))


def _joined(pieces: Sequence[StyledText]) -> Iterator[StyledText]:
    for index, piece in enumerate(pieces):
        if index:
            yield StyledText(", ")
        yield piece


def _lock_row(status: ClusterStatus, now: datetime) -> Row:
    if not status.is_lock_known:
        return _row("lock", "unknown", Style.LATE)
    if status.lock is None:
        return _row("lock", "free: no deploy or teardown is running")
    return _row("lock", *_lock_text(status.lock, now))


def _lock_text(lock: LockStatus, now: datetime) -> tuple[str, Style]:
    person = f"{lock.holder.person}, " if lock.holder.person else ""
    since = f", since {lock.since:%Y-%m-%d %H:%M:%SZ}" if lock.since else ""
    text = f"held by {person}run {lock.holder.run_id[:RUN_ID_LENGTH]}{_age(lock.since, now, ' for ')}{since}"
    if lock.is_abandoned:
        return f"{text}; not renewed: that run has died, and the next one takes the lock", Style.BAD
    return text, Style.BUSY


def _list_rows(label: str, style: Style, applications: Sequence[Any], texts: Iterable[tuple[str, str]]) -> list[Row]:
    """One row for each text, the number of applications before the first, and a row for those left out."""
    if not applications:
        return []
    named = list(texts)
    width = max(len(name) for name, _ in named)
    rows: list[Row] = [(StyledText(f"{name:<{width}}  ", style), StyledText(text)) for name, text in named]
    if len(applications) > len(named):
        rows.append((StyledText(f"and {len(applications) - len(named)} more"),))
    labels = [f"{label} {len(applications)}", *[""] * (len(rows) - 1)]
    return [(StyledText(f"{each:<{LABEL_WIDTH}}"), *row) for each, row in zip(labels, rows, strict=True)]


def _active_text(application: ActiveApplication, now: datetime) -> tuple[str, str]:
    verb = "last synced by" if application.is_synced else "by"
    by = f", {verb} {_short_run(application.by)}" if application.by else ""
    detail = f": {application.detail}" if application.detail else ""
    return application.name, f"{application.activity}{_age(application.since, now, ' for ')}{by}{detail}"


def _short_run(initiator: str) -> str:
    return initiator[: len("run ") + RUN_ID_LENGTH] if initiator.startswith("run ") else initiator


def _failed_text(application: FailedApplication, now: datetime) -> tuple[str, str]:
    age = _age(application.since, now, " for ")
    return application.name, f"{application.reason}{age}: {application.cause or 'Argo CD gives no reason'}"


def _age(since: datetime | None, now: datetime, before: str, after: str = "") -> str:
    """How long ago; empty if that is not known. A clock that is ahead of the server's shows as 0 s."""
    return f"{before}{format_duration(max(now - since, timedelta(0)))}{after}" if since else ""
