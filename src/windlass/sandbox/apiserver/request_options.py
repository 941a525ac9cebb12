"""Parsing of queries and delete bodies into `RequestOptions`; invalid options raise the real server's errors. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.sandbox.apiserver.objects import patches
from windlass.sandbox.apiserver.requests import RequestOptions
from windlass.sandbox.apiserver.wire import api_status
from windlass.sandbox.apiserver.wire.api_status import FieldError, bad_request, forbidden_field, unsupported_error

if TYPE_CHECKING:
    from collections.abc import Mapping

PROPAGATION_POLICIES = ("Foreground", "Background", "Orphan")
FIELD_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
VERSION_MATCH = "resourceVersionMatch"
MAX_MANAGER_BYTES = 128  # bytes
_TRUE_VALUES = frozenset({"1", "true", "True"})


def parse_write_options(query: Mapping[str, str], verb: str, patch: str) -> RequestOptions:
    errors = _dry_run_errors([query["dryRun"]] if query.get("dryRun") else [])
    validation, manager = query.get("fieldValidation", ""), query.get("fieldManager", "")
    if validation not in FIELD_VALIDATIONS:
        errors.append(unsupported_error("fieldValidation", validation, FIELD_VALIDATIONS))
    errors += _manager_errors(manager)
    force = query.get("force") in _TRUE_VALUES
    if patch == patches.APPLY_PATCH and not manager:
        errors.append(api_status.required_error("fieldManager", "is required for apply patch"))
    if force and patch != patches.APPLY_PATCH:
        errors.append(forbidden_field("force", "may not be specified for non-apply patch"))
    if errors:
        raise api_status.invalid_options(f"{verb.capitalize()}Options", errors)
    return RequestOptions(
        dry_run=bool(query.get("dryRun")), manager=manager, force=force, validation=validation or "Warn"
    )


def parse_read_options(query: Mapping[str, str], *, is_watch: bool) -> RequestOptions:
    version, match = query.get("resourceVersion", ""), query.get(VERSION_MATCH, "")
    initial = query.get("sendInitialEvents") in _TRUE_VALUES
    errors = _watch_errors(match, initial=initial) if is_watch or initial else _match_errors(version, match)
    if errors:
        raise api_status.invalid_options("ListOptions", errors)
    seconds = _parse_number(query, "timeoutSeconds")
    return RequestOptions(
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
        limit=max(0, _parse_number(query, "limit") or 0),
        token=query.get("continue", ""),
        resource_version=_parse_version(version, is_watch=is_watch),
        version_match=match,
        bookmarks=query.get("allowWatchBookmarks") in _TRUE_VALUES,
        initial_events=initial,
        seconds=None if seconds is None else float(seconds),
    )


def parse_delete_options(query: Mapping[str, str], body: Any) -> RequestOptions:
    """With a body, the query is ignored except for selectors."""
    options: Any = body if isinstance(body, dict) else {name: value for name, value in query.items() if value}
    conditions = options.get("preconditions") or {}
    grace, orphan = options.get("gracePeriodSeconds"), options.get("orphanDependents")
    policy = options.get("propagationPolicy") or ("" if orphan is None else "Orphan" if orphan else "Background")
    dry_run = options.get("dryRun") or []
    errors = _dry_run_errors([dry_run] if isinstance(dry_run, str) else dry_run)
    if policy and policy not in PROPAGATION_POLICIES:
        errors.append(unsupported_error("propagationPolicy", policy, PROPAGATION_POLICIES))
    if errors:
        raise api_status.invalid_options("DeleteOptions", errors)
    return RequestOptions(
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
    listed = ", ".join(f'"{value}"' for value in values)
    return [FieldError("FieldValueNotSupported", "dryRun", f'Unsupported value: [{listed}]: supported values: "All"')]


def _manager_errors(manager: str) -> list[FieldError]:
    if len(manager.encode()) > MAX_MANAGER_BYTES:
        return [api_status.too_long("fieldManager", MAX_MANAGER_BYTES)]
    for position, letter in enumerate(manager):
        if not letter.isprintable():
            why = f"invalid character U+{ord(letter):04X} (at position {position})"
            return [api_status.invalid_value("fieldManager", manager, why)]
    return []


def _match_errors(version: str, match: str) -> list[FieldError]:
    if match and not version:
        return [forbidden_field(VERSION_MATCH, f"{VERSION_MATCH} is forbidden unless resourceVersion is provided")]
    if match not in {"", "Exact", "NotOlderThan"}:
        return [unsupported_error(VERSION_MATCH, match, ("", "Exact", "NotOlderThan"))]
    if match == "Exact" and version == "0":
        return [forbidden_field(VERSION_MATCH, f'{VERSION_MATCH} "exact" is forbidden for resourceVersion "0"')]
    return []


def _watch_errors(match: str, *, initial: bool) -> list[FieldError]:
    if initial and match != "NotOlderThan":
        return [forbidden_field(VERSION_MATCH, f"sendInitialEvents requires setting {VERSION_MATCH} to NotOlderThan")]
    if match and not initial:
        return [
            forbidden_field(
                VERSION_MATCH, f"{VERSION_MATCH} is forbidden for watch unless sendInitialEvents is provided"
            )
        ]
    return []


def _parse_version(text: str, *, is_watch: bool) -> str:
    if text and not text.isdecimal():
        if is_watch:
            why = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
            raise api_status.internal_error(why)
        raise bad_request(f"invalid resource version: {text}")
    return text


def _parse_number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "")
    try:
        return int(text) if text else None
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None
