"""A Kubernetes client behind one transport interface, and what both halves share: leases, access reviews, inventory."""

from __future__ import annotations

from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

from windlass.kube.client.resources import Resource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from windlass.kube.auth.connections import Connection
    from windlass.kube.client.clients import KubeClient
    from windlass.kube.transport.calls import CallLimits

__all__ = ["Resource", "connect"]

NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


@asynccontextmanager
async def connect(
    kubeconfig: str | Path | None = None,
    *,
    context: str | None = None,
    in_cluster: bool = False,
    environ: Mapping[str, str] = NO_VARIABLES,
    limits: CallLimits | None = None,
) -> AsyncIterator[KubeClient]:
    """Open a client and close it at the end: `async with connect(kubeconfig="kubeconfig") as kube:`.

    Give either a kubeconfig file or `in_cluster`, for the service account of the pod this runs in. Environment
    variables, such as proxies and the PATH of exec plugins, are read from `environ` only; pass `os.environ` to use
    those of the process.
    """
    # Imported here, because every module of this package loads this file, and most do not need the HTTP library.
    from windlass.kube.client.clients import KubeClient  # noqa: PLC0415
    from windlass.kube.transport.calls import CallSender  # noqa: PLC0415
    from windlass.kube.transport.http import HttpTransport  # noqa: PLC0415

    connection = _load_connection(kubeconfig, context, environ, in_cluster=in_cluster)
    client = KubeClient(CallSender(HttpTransport(connection), limits=limits))
    try:
        yield client
    finally:
        await client.close()


def _load_connection(
    kubeconfig: str | Path | None, context: str | None, environ: Mapping[str, str], *, in_cluster: bool
) -> Connection:
    from pathlib import Path  # noqa: PLC0415

    from windlass.errors import InvalidInput  # noqa: PLC0415
    from windlass.kube.auth import kubeconfigs  # noqa: PLC0415

    if in_cluster == (kubeconfig is not None):
        raise InvalidInput("give either a kubeconfig or in_cluster=True")
    if kubeconfig is None:
        return kubeconfigs.in_cluster(environ)
    return kubeconfigs.load_file(Path(kubeconfig), context=context, environ=environ)
