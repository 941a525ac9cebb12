"""Errors of the API server as Status objects, with the exact texts of the real server, which clients match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

Body = dict[str, Any]
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


class Kind(Protocol):
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


class Refusal(Exception):
    """A request failed; the response is a Status object."""

    def __init__(self, code: int, reason: str, message: str, details: Body | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.details = details
        self.list_meta: Body = {}
        self.text = ""
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


def required(field: str, message: str = "") -> FieldError:
    return FieldError("FieldValueRequired", field, f"Required value: {message}" if message else "Required value")


def invalid_value(field: str, value: Any, message: str, *, reason: str = "FieldValueInvalid") -> FieldError:
    return FieldError(reason, field, f"Invalid value: {shown(value)}: {message}")


def forbidden_field(field: str, message: str) -> FieldError:
    return FieldError("FieldValueForbidden", field, f"Forbidden: {message}")


def unsupported(field: str, value: Any, known: Sequence[str]) -> FieldError:
    supported = ", ".join(f'"{choice}"' for choice in known)
    return FieldError(
        "FieldValueNotSupported", field, f"Unsupported value: {shown(value)}: supported values: {supported}"
    )


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError("FieldValueDuplicate", field, f"Duplicate value: {shown(value)}")


def too_long(field: str, most: int) -> FieldError:
    return FieldError("FieldValueTooLong", field, f"Too long: may not be more than {most} bytes")


def shown(value: Any) -> str:
    """A value as the real server prints it in error messages."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, dict):
        return "{" + ",".join(f'"{name}":{shown(child)}' for name, child in sorted(value.items())) + "}"
    return str(value)


def of(kind: Kind, name: str) -> Body:
    return {"name": name, **({"group": kind.group} if kind.group else {}), "kind": kind.plural}


def not_found(kind: Kind, name: str) -> Refusal:
    return Refusal(404, "NotFound", f'{kind.id} "{name}" not found', of(kind, name))


def unknown_path() -> Refusal:
    return Refusal(404, "NotFound", "the server could not find the requested resource", {})


def nowhere() -> Refusal:
    """The error for a path in an API group that is not served."""
    refusal = unknown_path()
    refusal.text = "404 page not found\n"
    return refusal


def already_exists(kind: Kind, name: str, *, deleting: bool = False) -> Refusal:
    head = "object is being deleted: " if deleting else ""
    return Refusal(409, "AlreadyExists", f'{head}{kind.id} "{name}" already exists', of(kind, name))


def conflict(kind: Kind, name: str, why: str = MODIFIED) -> Refusal:
    return Refusal(409, "Conflict", f'Operation cannot be fulfilled on {kind.id} "{name}": {why}', of(kind, name))


def bad_request(message: str) -> Refusal:
    return Refusal(400, "BadRequest", message)


def not_handled(kind: Kind, why: str) -> Refusal:
    return bad_request(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {why}')


def forbidden(kind: Kind, name: str, why: str) -> Refusal:
    subject = f'{kind.id} "{name}"' if name else kind.id
    return Refusal(
        403, "Forbidden", f"{subject} is forbidden: {why}", of(kind, name) if name else {"kind": kind.plural}
    )


def invalid(kind: Kind, name: str, errors: Sequence[FieldError]) -> Refusal:
    """The error for an invalid object; lists field errors in order, without duplicates."""
    unique = list(dict.fromkeys(errors))
    texts = [f"{error.field}: {error.message}" for error in unique]
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    qualified = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    details = {**of(kind, name), "kind": kind.kind, "causes": [error.cause for error in unique]}
    return Refusal(422, "Invalid", f'{qualified} "{name}" is invalid: {text}', details)


def unsupported_media(*known: str) -> Refusal:
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(known)}"
    return Refusal(415, "UnsupportedMediaType", message, {})


def invalid_options(kind: str, errors: Sequence[FieldError]) -> Refusal:
    texts = [f"{error.field}: {error.message}" for error in errors]
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = {"group": "meta.k8s.io", "kind": kind, "causes": [error.cause for error in errors]}
    return Refusal(422, "Invalid", f'{kind}.meta.k8s.io "" is invalid: {text}', details)


def method_not_allowed() -> Refusal:
    return Refusal(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def broken(message: str) -> Refusal:
    """Code 500 without a reason, as the real server answers some invalid requests."""
    return Refusal(500, "", message)


def expired(message: str) -> Refusal:
    return Refusal(410, "Expired", message)


def too_many(message: str, seconds: int) -> Refusal:
    return Refusal(429, "TooManyRequests", message, {"retryAfterSeconds": seconds})


def success(kind: Kind, name: str, uid: str) -> Body:
    details = {**of(kind, name), "uid": uid}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def present(body: Body) -> Body:
    """The mapping without values that are null, an empty list or an empty mapping."""
    return {name: value for name, value in body.items() if value is not None and value not in ({}, [])}
