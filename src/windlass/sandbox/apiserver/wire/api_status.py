"""Errors of the API server as Status objects, with the exact texts of the real server, which clients match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

Body = dict[str, Any]
MODIFIED_MESSAGE = "the object has been modified; please apply your changes to the latest version and try again"


class KindNames(Protocol):
    """The names of a kind that appear in error messages."""

    @property
    def group(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def plural(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def id(self) -> str: ...


class StatusError(Exception):
    """A request failed; the response is a Status object."""

    def __init__(self, code: int, reason: str, message: str, details: Body | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.details = details
        self.list_meta: Body = {}
        self.plain_text = ""
        """Plain text to send instead of a Status, for paths that no API group serves."""

    @property
    def body(self) -> Body:
        head = {"kind": "Status", "apiVersion": "v1", "metadata": self.list_meta, "status": "Failure"}
        body = {**head, "message": str(self), **({"reason": self.reason} if self.reason else {})}
        return {**body, **({"details": self.details} if self.details is not None else {}), "code": self.code}


@dataclass(frozen=True, slots=True)
class FieldError:
    """One validation error of one field."""

    reason: str
    field: str
    message: str

    @property
    def cause(self) -> Body:
        return {"reason": self.reason, "message": self.message, "field": self.field}


def required_error(field: str, message: str = "") -> FieldError:
    return FieldError("FieldValueRequired", field, f"Required value: {message}" if message else "Required value")


def invalid_value(field: str, value: Any, message: str, *, reason: str = "FieldValueInvalid") -> FieldError:
    return FieldError(reason, field, f"Invalid value: {format_value(value)}: {message}")


def forbidden_field(field: str, message: str) -> FieldError:
    return FieldError("FieldValueForbidden", field, f"Forbidden: {message}")


def unsupported_error(field: str, value: Any, choices: Sequence[str]) -> FieldError:
    supported = ", ".join(f'"{choice}"' for choice in choices)
    return FieldError(
        "FieldValueNotSupported", field, f"Unsupported value: {format_value(value)}: supported values: {supported}"
    )


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError("FieldValueDuplicate", field, f"Duplicate value: {format_value(value)}")


def too_long(field: str, max_bytes: int) -> FieldError:
    return FieldError("FieldValueTooLong", field, f"Too long: may not be more than {max_bytes} bytes")


def format_value(value: Any) -> str:
    """A value as the real server prints it in error messages."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, dict):
        return "{" + ",".join(f'"{name}":{format_value(child)}' for name, child in sorted(value.items())) + "}"
    return str(value)


def status_details(kind: KindNames, name: str) -> Body:
    return {"name": name, **({"group": kind.group} if kind.group else {}), "kind": kind.plural}


def not_found(kind: KindNames, name: str) -> StatusError:
    return StatusError(404, "NotFound", f'{kind.id} "{name}" not found', status_details(kind, name))


def unknown_path() -> StatusError:
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def page_not_found() -> StatusError:
    """The error for a path in an API group that is not served."""
    error = unknown_path()
    error.plain_text = "404 page not found\n"
    return error


def already_exists(kind: KindNames, name: str, *, deleting: bool = False) -> StatusError:
    head = "object is being deleted: " if deleting else ""
    return StatusError(409, "AlreadyExists", f'{head}{kind.id} "{name}" already exists', status_details(kind, name))


def conflict(kind: KindNames, name: str, why: str = MODIFIED_MESSAGE) -> StatusError:
    return StatusError(
        409, "Conflict", f'Operation cannot be fulfilled on {kind.id} "{name}": {why}', status_details(kind, name)
    )


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def decoding_error(kind: KindNames, why: str) -> StatusError:
    return bad_request(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {why}')


def forbidden_error(kind: KindNames, name: str, why: str) -> StatusError:
    subject = f'{kind.id} "{name}"' if name else kind.id
    return StatusError(
        403,
        "Forbidden",
        f"{subject} is forbidden: {why}",
        status_details(kind, name) if name else {"kind": kind.plural},
    )


def invalid(kind: KindNames, name: str, errors: Sequence[FieldError]) -> StatusError:
    """The error for an invalid object; lists field errors in order, without duplicates."""
    unique = list(dict.fromkeys(errors))
    texts = [f"{error.field}: {error.message}" for error in unique]
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    qualified = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    details = {**status_details(kind, name), "kind": kind.kind, "causes": [error.cause for error in unique]}
    return StatusError(422, "Invalid", f'{qualified} "{name}" is invalid: {text}', details)


def unsupported_media_type(*media_types: str) -> StatusError:
    message = (
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(media_types)}"
    )
    return StatusError(415, "UnsupportedMediaType", message, {})


def invalid_options(kind: str, errors: Sequence[FieldError]) -> StatusError:
    texts = [f"{error.field}: {error.message}" for error in errors]
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = {"group": "meta.k8s.io", "kind": kind, "causes": [error.cause for error in errors]}
    return StatusError(422, "Invalid", f'{kind}.meta.k8s.io "" is invalid: {text}', details)


def method_not_allowed() -> StatusError:
    return StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def internal_error(message: str) -> StatusError:
    """Code 500 without a reason, as the real server answers some invalid requests."""
    return StatusError(500, "", message)


def expired_error(message: str) -> StatusError:
    return StatusError(410, "Expired", message)


def too_many_requests(message: str, seconds: int) -> StatusError:
    return StatusError(429, "TooManyRequests", message, {"retryAfterSeconds": seconds})


def success_status(kind: KindNames, name: str, uid: str) -> Body:
    details = {**status_details(kind, name), "uid": uid}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def without_empty(body: Body) -> Body:
    """The mapping without values that are null, an empty list or an empty mapping."""
    return {name: value for name, value in body.items() if value is not None and value not in ({}, [])}
