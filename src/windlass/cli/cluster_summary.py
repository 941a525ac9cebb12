"""The summary of a cluster: proves that address, certificates, credentials and permissions work."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from windlass.cli import session
from windlass.kube.access_reviews import read_identity
from windlass.kube.api_errors import Forbidden, NotFound
from windlass.kube.client.objects import TypedObject
from windlass.kube.client.readers import KubeReader
from windlass.kube.client.resources import Resource
from windlass.kube.transport.calls import CallSender
from windlass.kube.transport.http import HttpTransport

if TYPE_CHECKING:
    from windlass.kube.access_reviews import UserIdentity
    from windlass.kube.auth.connections import Connection
    from windlass.settings.settings import ClusterCredentials

APPLICATIONS = Resource("argoproj.io", "v1alpha1", "applications", "Application")


class _StatusField(msgspec.Struct, frozen=True):
    status: str = "Unknown"


class _ApplicationStatus(msgspec.Struct, frozen=True):
    health: _StatusField = _StatusField()
    sync: _StatusField = _StatusField()


class _Application(TypedObject, frozen=True):
    status: _ApplicationStatus = _ApplicationStatus()


def describe(credentials: ClusterCredentials) -> list[str]:
    return session.run(_describe(credentials.load_connection()), credentials.redactor)


async def _describe(connection: Connection) -> list[str]:
    reader = KubeReader(CallSender(HttpTransport(connection)))
    try:
        version = await reader.version()
        discovery = await reader.discover()
        groups = len({resource.group for resource in discovery.resources})
        lines = [
            f"server        {reader.server}  {version}",
            f"identity      {_identity(await read_identity(reader))}",
            f"serves        {len(discovery.resources)} resources in {groups} groups",
            f"applications  {await _applications(reader)}",
            f"calls         {reader.counts.total} requests, {reader.counts.writes} writes",
        ]
        lines += [f"no answer     {name}: announced, but its server does not answer" for name in discovery.unavailable]
        lines += [f"warning       {notice}" for notice in connection.notices]
        return [connection.redactor(connection.redactor.message(line)) for line in lines]
    finally:
        await reader.close()


def _identity(user: UserIdentity) -> str:
    name = user.name or "unknown: this server does not tell"
    return f"{name}  ({', '.join(user.groups)})" if user.groups else name


async def _applications(reader: KubeReader) -> str:
    try:
        listing = await reader.list(APPLICATIONS.everywhere, _Application)
    except NotFound:
        return "none: Argo CD's Application is not served here"
    except Forbidden:
        return "not readable with these rights"
    health = Counter(application.status.health.status for application in listing.items)
    summary = ", ".join(f"{number} {word}" for word, number in sorted(health.items()))
    return f"{len(listing.items)}  ({summary})" if summary else "0"
