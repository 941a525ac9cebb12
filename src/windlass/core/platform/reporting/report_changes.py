"""What the syncs of a plan change, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.platform.planning.object_changes import ApplicationChange, Effect
from windlass.core.platform.reporting.text_layout import join_names, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.core.platform.planning.field_changes import FieldChange
    from windlass.core.platform.reporting.reports import Report

MAX_LISTED_OBJECTS = 5  # of one application in one line
MAX_LISTED_NAMES = 10
_EFFECT_WORDS = {Effect.PIN: "only its pin moves", Effect.NONE: "no object changes", Effect.UNKNOWN: "not known"}


def change_items(report: Report) -> list[str]:
    """One line for each application whose objects change; those of which that is not known share a line per reason."""
    return [_change_line(change) for change in _shown_changes(report)]


def change_lines(report: Report, width: int | None) -> Iterator[str]:
    """The same with each object, and its fields if the report has them."""
    for change in _shown_changes(report):
        yield from wrap(f"  {_headline(change)}", width)
        for each in change.objects:
            yield from wrap(f"    {each.effect} {each}", width)
            for field in each.fields:
                yield from wrap(f"      {_field_text(field)}", width)
            if each.is_truncated:
                yield "      and more fields"
        if change.is_truncated:
            yield "    and more objects"


def _shown_changes(report: Report) -> Iterator[ApplicationChange]:
    unknown: dict[str, list[str]] = {}
    for change in report.changes:
        if change.effect is Effect.UNKNOWN:
            unknown.setdefault(change.detail, []).append(change.name)
        elif change.effect is Effect.CHANGES or change.detail:
            yield change
    for detail, names in unknown.items():
        yield ApplicationChange(join_names(names, MAX_LISTED_NAMES), Effect.UNKNOWN, detail)


def _headline(change: ApplicationChange) -> str:
    notes = "; ".join(filter(None, (_EFFECT_WORDS.get(change.effect), change.detail)))
    return f"{change.name}: {notes}" if notes else change.name


def _change_line(change: ApplicationChange) -> str:
    objects = join_names([f"{each.effect} {each}" for each in change.objects], MAX_LISTED_OBJECTS)
    return "; ".join(filter(None, (_headline(change), objects))) if change.detail else f"{change.name}: {objects}"


def _field_text(field: FieldChange) -> str:
    if field.before is None:
        return f"{field.path}: added {field.after}"
    return f"{field.path}: {field.before} " + ("is removed" if field.after is None else f"-> {field.after}")
