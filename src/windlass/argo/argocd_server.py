"""Argo CD's API server: the manifests that it renders at any revision, and its comparison with the live objects.

It is reached through the API server of the cluster, which forwards requests to the service. That server uses the
Authorization header for itself, so Argo CD's token is sent as the cookie that Argo CD's own web page uses. Only GET
requests are sent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import msgspec

from windlass.core.platform.planning.object_changes import ComparedObject, Manifest
from windlass.errors import WindlassError
from windlass.kube.api_errors import (
    ApiError,
    ConnectionLost,
    Forbidden,
    KubeError,
    NotPermitted,
    ServerError,
    Unauthorized,
    Unreachable,
    missing_right,
)
from windlass.kube.client.readers import ProxiedGet
from windlass.kube.client.resources import SERVICES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windlass.argo.cd.applications import ObjectKey
    from windlass.kube.client.readers import KubeReader

SERVICE = "argocd-server"
ENDPOINTS = (f"https:{SERVICE}:443", f"http:{SERVICE}:80")
"""With TLS as installed; without it if Argo CD's setting `server.insecure` is true."""
ANSWER_SECONDS = 60.0  # for one answer; Argo CD may have to clone a repository and render a chart
MAX_ANSWER_BYTES = 32 << 20
MAX_OBJECTS = 5_000  # of one Application
MAX_TOKEN_LENGTH = 16_384
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+")
_Answer = TypeVar("_Answer", bound=msgspec.Struct)


class NoArgoCdServer(WindlassError):
    """Argo CD's API cannot be used: every further request would fail in the same way."""


class NotRendered(WindlassError):
    """Argo CD does not tell what one Application consists of."""


class _Manifests(msgspec.Struct, frozen=True, rename="camel"):
    manifests: list[str] | None = None


class _ManagedItem(msgspec.Struct, frozen=True, rename="camel"):
    group: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    target_state: str = ""
    live_state: str = ""
    normalized_live_state: str = ""
    predicted_live_state: str = ""
    hook: bool = False


class _ManagedItems(msgspec.Struct, frozen=True):
    items: list[_ManagedItem] | None = None


@dataclass(slots=True)
class ArgoCdServer:
    """Reads through the connection to the cluster that Argo CD runs in."""

    reader: KubeReader
    namespace: str
    token: str = field(repr=False)
    _endpoint: str = ""
    """The first of `ENDPOINTS` that answered."""

    async def manifests(self, application: ObjectKey, revisions: tuple[str, ...]) -> tuple[Manifest, ...]:
        """The manifests at these revisions, one for each source, with the sources that the Application has now."""
        query = (("revision", revisions[0]),) if len(revisions) == 1 else _source_query(revisions)
        answer = await self._get(application, "manifests", query, _Manifests)
        return tuple(each for each in map(_decode_object, _limited(answer.manifests or ())) if each)

    async def compared_objects(self, application: ObjectKey) -> tuple[ComparedObject, ...]:
        """The objects of the Application as Argo CD compared them last; hooks are left out."""
        answer = await self._get(application, "managed-resources", (), _ManagedItems)
        return tuple(_compared_object(item) for item in _limited(answer.items or ()) if not item.hook)

    async def _get(
        self, application: ObjectKey, what: str, query: tuple[tuple[str, str], ...], into: type[_Answer]
    ) -> _Answer:
        namespace, name = application
        path = f"/api/v1/applications/{quote(name, safe='')}/{what}"
        failures: list[KubeError] = []
        for endpoint in [self._endpoint] if self._endpoint else ENDPOINTS:
            get = ProxiedGet(
                service=SERVICES.named(endpoint, self.namespace).with_subresource("proxy"),
                path=path,
                query=(*query, ("appNamespace", namespace)),
                headers=(("Cookie", f"argocd.token={self.token}"),),
                timeout=ANSWER_SECONDS,
                max_bytes=MAX_ANSWER_BYTES,
            )
            try:
                answer = await self.reader.get_through_service(get, into)
            except KubeError as error:
                failures.append(error)
                if not (isinstance(error, ServerError) and _is_of_cluster(error)):
                    raise _translate(error) from None
            else:
                self._endpoint = endpoint
                return answer
        raise _translate(failures[0])


def token_problem(token: str) -> str:
    """Why the text cannot be a token of Argo CD; empty if it can. It must not contain what ends a header."""
    if not token:
        return "it is empty"
    if len(token) > MAX_TOKEN_LENGTH or not _TOKEN.fullmatch(token):
        return "it is no token: a token is one line of letters, digits and dots"
    return ""


def _source_query(revisions: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    positions = (("sourcePositions", str(number)) for number in range(1, len(revisions) + 1))
    return (*(("revisions", revision) for revision in revisions), *positions)


def _limited(items: Iterable[Any]) -> list[Any]:
    found = list(items)
    if len(found) > MAX_OBJECTS:
        raise NotRendered(f"it has more than {MAX_OBJECTS:,} objects")
    return found


def _decode_object(text: str) -> Manifest | None:
    """An object in the text of an answer; `None` if there is none, which Argo CD writes as `null` or nothing."""
    if not text:
        return None
    try:
        found: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise NotRendered("Argo CD's answer contains an object that is no JSON") from None
    if found is not None and not isinstance(found, dict):
        raise NotRendered("Argo CD's answer contains an object that is none")
    return found


def _compared_object(item: _ManagedItem) -> ComparedObject:
    return ComparedObject(
        f"{item.group}/{item.kind}" if item.group else item.kind,
        item.namespace,
        item.name,
        live=_decode_object(item.live_state),
        normalized=_decode_object(item.normalized_live_state),
        predicted=_decode_object(item.predicted_live_state),
        has_target=_decode_object(item.target_state) is not None,
    )


def _is_of_cluster(error: KubeError) -> bool:
    """Whether the API server of the cluster answered in place of Argo CD, which sends no Status."""
    return isinstance(error, ApiError) and error.status.kind == "Status"


def _translate(error: KubeError) -> WindlassError:
    """The error as one about Argo CD. Without a connection or a valid token, every other request fails too."""
    if isinstance(error, Unauthorized):
        return NoArgoCdServer("Argo CD does not accept the token: is it expired, or of another Argo CD?")
    if isinstance(error, NotPermitted):
        hint = "the rights are printed by: windlass rbac --for plan"
        return NoArgoCdServer(f"Argo CD's API cannot be reached: {missing_right(error)}", hint=hint)
    if _is_of_cluster(error) or isinstance(error, Unreachable | ConnectionLost):
        return NoArgoCdServer(f"Argo CD's API cannot be reached: {error.what}")
    if isinstance(error, ApiError) and 300 <= error.code < 400:
        return NoArgoCdServer(f"Argo CD's API redirects to another address, which is not followed: {error.what}")
    if isinstance(error, Forbidden):
        return NotRendered(f"Argo CD does not permit the owner of the token to read it: {error.what}")
    return NotRendered(error.what)
