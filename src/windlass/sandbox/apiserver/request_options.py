"""Parsing of queries and delete bodies into `RequestOptions`; invalid options raise the real server's errors. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.sandbox.apiserver.objects import patches
from windlass.sandbox.apiserver.requests import Options
from windlass.sandbox.apiserver.wire import api_status
from windlass.sandbox.apiserver.wire.api_status import FieldError, bad_request, forbidden_field, unsupported

if TYPE_CHECKING:
    from collections.abc import Mapping

POLICIES = ("Foreground", "Background", "Orphan")
VALIDATIONS = ("", "Ignore", "Strict", "Warn")
MATCH = "resourceVersionMatch"
LONGEST_MANAGER = 128  # bytes
_TRUE = frozenset({"1", "true", "True"})


def of_write(query: Mapping[str, str], verb: str, patch: str) -> Options:
    errors = _dry_run_errors([query["dryRun"]] if query.get("dryRun") else [])
    validation, manager = query.get("fieldValidation", ""), query.get("fieldManager", "")
    if validation not in VALIDATIONS:
        errors.append(unsupported("fieldValidation", validation, VALIDATIONS))
    errors += _manager_errors(manager)
    force = query.get("force") in _TRUE
    if patch == patches.APPLY and not manager:
        errors.append(api_status.required("fieldManager", "is required for apply patch"))
    if force and patch != patches.APPLY:
        errors.append(forbidden_field("force", "may not be specified for non-apply patch"))
    if errors:
        raise api_status.invalid_options(f"{verb.capitalize()}Options", errors)
    return Options(dry_run=bool(query.get("dryRun")), manager=manager, force=force, validation=validation or "Warn")


def of_read(query: Mapping[str, str], *, watches: bool) -> Options:
    version, match = query.get("resourceVersion", ""), query.get(MATCH, "")
    initial = query.get("sendInitialEvents") in _TRUE
    errors = _watch_errors(match, initial=initial) if watches or initial else _match_errors(version, match)
    if errors:
        raise api_status.invalid_options("ListOptions", errors)
    seconds = _number(query, "timeoutSeconds")
    return Options(
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
        limit=max(0, _number(query, "limit") or 0),
        token=query.get("continue", ""),
        resource_version=_version(version, watches=watches),
        version_match=match,
        bookmarks=query.get("allowWatchBookmarks") in _TRUE,
        initial_events=initial,
        seconds=None if seconds is None else float(seconds),
    )


def of_delete(query: Mapping[str, str], body: Any) -> Options:
    """With a body, the query is ignored except for selectors."""
    given: Any = body if isinstance(body, dict) else {name: value for name, value in query.items() if value}
    conditions = given.get("preconditions") or {}
    grace, orphan = given.get("gracePeriodSeconds"), given.get("orphanDependents")
    policy = given.get("propagationPolicy") or ("" if orphan is None else "Orphan" if orphan else "Background")
    dry_run = given.get("dryRun") or []
    errors = _dry_run_errors([dry_run] if isinstance(dry_run, str) else dry_run)
    if policy and policy not in POLICIES:
        errors.append(unsupported("propagationPolicy", policy, POLICIES))
    if errors:
        raise api_status.invalid_options("DeleteOptions", errors)
    return Options(
        dry_run=bool(dry_run),
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
        propagation=policy,
        grace=None if grace is None else int(grace),
        uid=conditions.get("uid") or "",
        resource_version=conditions.get("resourceVersion") or "",
    )


def _dry_run_errors(values: list[str]) -> list[FieldError]:
    if all(value == "All" for value in values):
        return []
    shown = ", ".join(f'"{value}"' for value in values)
    return [FieldError("FieldValueNotSupported", "dryRun", f'Unsupported value: [{shown}]: supported values: "All"')]


def _manager_errors(manager: str) -> list[FieldError]:
    if len(manager.encode()) > LONGEST_MANAGER:
        return [api_status.too_long("fieldManager", LONGEST_MANAGER)]
    for place, letter in enumerate(manager):
        if not letter.isprintable():
            why = f"invalid character U+{ord(letter):04X} (at position {place})"
            return [api_status.invalid_value("fieldManager", manager, why)]
    return []


def _match_errors(version: str, match: str) -> list[FieldError]:
    if match and not version:
        return [forbidden_field(MATCH, f"{MATCH} is forbidden unless resourceVersion is provided")]
    if match not in {"", "Exact", "NotOlderThan"}:
        return [unsupported(MATCH, match, ("", "Exact", "NotOlderThan"))]
    if match == "Exact" and version == "0":
        return [forbidden_field(MATCH, f'{MATCH} "exact" is forbidden for resourceVersion "0"')]
    return []


def _watch_errors(match: str, *, initial: bool) -> list[FieldError]:
    if initial and match != "NotOlderThan":
        return [forbidden_field(MATCH, f"sendInitialEvents requires setting {MATCH} to NotOlderThan")]
    if match and not initial:
        return [forbidden_field(MATCH, f"{MATCH} is forbidden for watch unless sendInitialEvents is provided")]
    return []


def _version(text: str, *, watches: bool) -> str:
    if text and not text.isdecimal():
        if watches:
            why = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
            raise api_status.broken(why)
        raise bad_request(f"invalid resource version: {text}")
    return text


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "")
    try:
        return int(text) if text else None
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None
