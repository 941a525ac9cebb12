"""`ApiRequest` (user, verb, object, options) and `ApiResult`, independent of HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.objects.kinds import ServedKind
    from windlass.sandbox.apiserver.store import StoredObject
    from windlass.sandbox.apiserver.wire.api_status import Body

READ_VERBS = frozenset({"get", "list", "watch"})
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"


class UserInfo(msgspec.Struct, frozen=True):
    name: str
    groups: tuple[str, ...] = (AUTHENTICATED,)
    uid: str = ""
    pod: tuple[str, str] = ("", "")
    """Name and uid of the pod that the token is bound to; empty strings if none."""

    @property
    def body(self) -> Body:
        fields = {"username": self.name, **({"uid": self.uid} if self.uid else {}), "groups": list(self.groups)}
        extra = zip(("pod-name", "pod-uid"), self.pod, strict=True)
        extra_fields = {f"authentication.kubernetes.io/{name}": [value] for name, value in extra if value}
        return {**fields, **({"extra": extra_fields} if extra_fields else {})}


ANONYMOUS = UserInfo("system:anonymous", (UNAUTHENTICATED,))
ADMIN = UserInfo("kubernetes-admin", (MASTERS, AUTHENTICATED))


class RequestOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options from the query of a request, and from the body of a delete."""

    dry_run: bool = False
    manager: str = ""
    force: bool = False
    validation: str = "Warn"
    labels: str = ""
    fields: str = ""
    limit: int = 0
    token: str = ""
    resource_version: str = ""
    version_match: str = ""
    bookmarks: bool = False
    initial_events: bool = False
    seconds: float | None = None
    propagation: str = ""
    grace: int | None = None
    uid: str = ""
    """Precondition of a delete: the uid that the object must have."""


DEFAULT_OPTIONS = RequestOptions()


class ApiRequest(msgspec.Struct, frozen=True, kw_only=True):
    verb: str
    kind: ServedKind
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    body: Any = None
    patch: str = ""
    """Media type of a patch."""
    user: UserInfo = ADMIN
    agent: str = ""
    options: RequestOptions = DEFAULT_OPTIONS
    extra: dict[str, str] = {}  # msgspec copies empty defaults
    """The whole query, for parameters such as `tailLines` of a log."""

    @property
    def manager(self) -> str:
        """Name of the field manager: as given, else the program name in the user agent."""
        return self.options.manager or self.agent.partition("/")[0] or "unknown"


class OpenWatch(Protocol):
    """An open watch; `ApiServer` streams its events."""

    def disrupt(self, mode: str) -> None: ...


class ApiResult(msgspec.Struct, frozen=True):
    """HTTP status code and an object, an encoded list, a text, or an open watch."""

    code: int
    item: StoredObject | Body | bytes | str | OpenWatch
    warnings: tuple[str, ...] = ()
