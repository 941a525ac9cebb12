"""Errors of API calls: failures of the connection, and error responses with the server's Status.

KubeError
├── Unreachable          the request was not sent: address, name resolution, TLS, proxy
├── ConnectionLost       the connection broke after sending: the server may or may not have processed the request
├── DeadlineExceeded     no usable response in time
├── BadResponse          a response that no API server would send
└── ApiError             an error response; `status` is the Status the server sent
    ├── BadRequest 400 · Unauthorized 401 · NotFound 404 · MethodNotAllowed 405
    ├── Forbidden 403 · NotPermitted 403 (names the user and the right that is missing)
    ├── AlreadyExists 409 · Conflict 409 (names managers and fields) · Expired 410 · Invalid 422
    └── TooManyRequests 429 · ServerError 5xx
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from windlass.errors import WindlassError
from windlass.kube.decoding import DecodingError, decode_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from msgspec import Raw

    from windlass.kube.redactions import Redactor

BODY_EXCERPT_LENGTH = 200  # characters; enough to recognise the error page of a proxy without flooding a log
MAX_BODY_SOURCE = 1 << 17  # bytes; the excerpt is from far less of the text in them
MAX_CAUSES = 1_000  # of one Status


class StatusCause(msgspec.Struct, frozen=True):
    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    group: str = ""
    kind: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True):
    """A Kubernetes `Status` object (meta/v1)."""

    kind: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""
    details: StatusDetails | None = None

    @property
    def causes(self) -> tuple[StatusCause, ...]:
        return self.details.causes if self.details else ()


class FieldOwner(msgspec.Struct, frozen=True):
    """Another field manager that owns a field of the applied object."""

    manager: str
    field: str


class Denial(msgspec.Struct, frozen=True):
    """What the API server does not permit a user to do."""

    user: str
    verb: str
    resource: str
    """With the API group and the subresource: `deployments.apps`, `pods/log`."""
    namespace: str = ""
    """Empty for the whole cluster."""

    def __str__(self) -> str:
        location = f"in namespace {self.namespace}" if self.namespace else "in the whole cluster"
        return f"user {self.user} may not {self.verb} {self.resource} {location}"


class KubeError(WindlassError):
    """Base of all errors of API calls."""


class Unreachable(KubeError):
    """The request was not sent, so any verb may be retried if the cause is `temporary`; a wrong CA is not."""

    def __init__(self, what: str, *, where: str = "", hint: str = "", temporary: bool = True) -> None:
        super().__init__(what, where=where, hint=hint)
        self.temporary = temporary


class ConnectionLost(KubeError):
    """The request was sent and perhaps processed, but the response is missing or incomplete."""


class DeadlineExceeded(KubeError):
    """No usable response arrived within the timeout of the call."""


class BadAnswer(KubeError):
    """The response is not one that an API server sends."""


class ApiError(KubeError):
    """An error response of the API server, with its Status."""

    def __init__(self, status: Status, *, where: str = "", hint: str = "") -> None:
        what = status.message or status.reason or f"HTTP {status.code}"
        super().__init__(f"{what} ({status.code} {status.reason})".replace(" )", ")"), where=where, hint=hint)
        self.status = status

    @property
    def code(self) -> int:
        return self.status.code

    @property
    def reason(self) -> str:
        return self.status.reason


class BadRequest(ApiError):
    pass


class Unauthorized(ApiError):
    recommendation_key = "CredentialsInvalid"


class Forbidden(ApiError):
    """Refused by an admission webhook, a quota or another rule; if a right is missing, it is `NotPermitted`."""


class NotPermitted(Forbidden):
    """The credentials are valid, and the user lacks a right. Waiting does not help."""

    recommendation_key = "RightsMissing"

    def __init__(self, denial: Denial, status: Status, *, where: str) -> None:
        super().__init__(status, where=where, hint="the credentials are valid; an administrator can grant the right")
        self.what = f"{denial} ({status.code} {status.reason})"
        self.denial = denial


class NotFound(ApiError):
    pass


class MethodNotAllowed(ApiError):
    pass


class AlreadyExists(ApiError):
    pass


class Conflict(ApiError):
    """A precondition (resourceVersion or uid) does not match, or another field manager owns a field."""

    @property
    def owners(self) -> tuple[FieldOwner, ...]:
        """The managers that own the conflicting fields of a server-side apply; empty for other conflicts."""
        return tuple(_field_owners(self.status))


class Expired(ApiError):
    """The resourceVersion or continue token is too old; list again."""


class Invalid(ApiError):
    pass


class TooManyRequests(ApiError):
    pass


class ServerError(ApiError):
    pass


ERRORS_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    409: Conflict,
    410: Expired,
    422: Invalid,
    429: TooManyRequests,
}

HINTS: dict[type[ApiError], str] = {
    Unauthorized: "the credentials were rejected: is the token or certificate expired, or for another cluster?",
    Forbidden: "a rule of the cluster refuses it, such as an admission webhook or a quota",
}


def error_from_status(status: Status, where: str) -> ApiError:
    kind = ServerError if status.code >= 500 else ERRORS_BY_CODE.get(status.code, ApiError)
    if kind is Conflict and status.reason == "AlreadyExists":
        kind = AlreadyExists
    if kind is BadRequest and status.reason == "Expired":
        kind = Expired
    if kind is Forbidden and (denial := _parse_denial(status.message)):
        return NotPermitted(denial, status, where=where)
    return kind(status, where=where, hint=HINTS.get(kind, ""))


_STATUS_DECODER = msgspec.json.Decoder(Status)


def status_from_json(content: bytes | Raw, redactor: Redactor) -> Status:
    """The Status with each text on one printable line of limited length. Raises `DecodingError`."""
    status, short = decode_json(content, _STATUS_DECODER), redactor.message
    causes = tuple(
        StatusCause(short(cause.reason), short(cause.message), short(cause.field))
        for cause in status.causes[:MAX_CAUSES]
    )
    details = status.details and msgspec.structs.replace(
        status.details,
        name=short(status.details.name),
        group=short(status.details.group),
        kind=short(status.details.kind),
        causes=causes,
    )
    return msgspec.structs.replace(status, reason=short(status.reason), message=short(status.message), details=details)


def parse_status(code: int, body: bytes, redactor: Redactor) -> Status:
    """The Status in the body of an error response.

    If the body is something else, a Status with the HTTP code and its message, or an excerpt of the error page of a
    proxy.
    """
    try:
        status = status_from_json(body, redactor)
    except DecodingError:
        status = Status()
    if status.kind == "Status":
        return msgspec.structs.replace(status, code=code)
    if status.message:
        return Status(code=code, message=status.message)
    if not body:
        return Status(code=code, message=f"HTTP {code} without a body, unlike an API server: is it the right address?")
    text = body[:MAX_BODY_SOURCE].decode("utf-8", "replace")
    excerpt = redactor(redactor.message(text, BODY_EXCERPT_LENGTH, 0))  # a proxy's error page may quote our request
    return Status(code=code, message=f"HTTP {code} with a body that is no Status: {excerpt!r}")


_DENIAL = re.compile(
    r'User "((?:[^"\\]|\\.){1,253})" cannot ([a-z]{1,32}) resource "([a-z0-9./*-]{1,253})" in API group '
    r'"([a-z0-9.-]{0,253})" (?:in the namespace "([a-z0-9-]{1,63})"|at the cluster scope)'
)


def _parse_denial(message: str) -> Denial | None:
    """What an authorizer of the API server writes; `None` if the request was refused for another reason."""
    if (match := _DENIAL.search(message)) is None or not match[1].isprintable():
        return None
    user, verb, resource, group, namespace = match.groups()
    plural, _, subresource = resource.partition("/")
    plural = f"{plural}.{group}" if group else plural
    return Denial(user, verb, f"{plural}/{subresource}" if subresource else plural, namespace or "")


_CONFLICTING_MANAGER = re.compile(r'conflict with "((?:[^"\\]|\\.)*+)"')


def _field_owners(status: Status) -> Iterator[FieldOwner]:
    for cause in status.causes:
        if cause.reason == "FieldManagerConflict" and (match := _CONFLICTING_MANAGER.search(cause.message)):
            yield FieldOwner(manager=match[1], field=cause.field)


def missing_right(error: KubeError) -> str:
    """The right that the error names as missing; empty if it is another error."""
    return str(error.denial) if isinstance(error, NotPermitted) else ""


TRANSIENT_ERRORS = (Conflict, ConnectionLost, DeadlineExceeded, NotFound, ServerError, TooManyRequests, Unreachable)
"""After these errors, read the object again: its state tells more than the error."""
