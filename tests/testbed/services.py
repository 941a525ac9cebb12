"""The processes of the node: how each is started, and how it shows that it is ready."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.testbed import addresses, gobuild
from tests.testbed.components import COREDNS, ETCD, KUBERNETES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NODE_NAME = "node1"


@dataclass(frozen=True, slots=True)
class Service:
    """A process, and what must hold before the next one is started (nothing, when None)."""

    name: str
    command: tuple[str, ...]
    ready: Callable[[], bool] | None = None


def services(state: Path, forwarded: int) -> list[Service]:
    """All of them in the order of their start; `forwarded` is the descriptor that listens outside the node."""
    api = ApiServer(state)
    config = str(state / "kubeconfig-node")
    return [
        Service("etcd", _etcd(state), lambda: _listens(2379)),
        Service("containerd", ("containerd", "--config", f"{state}/containerd.toml")),
        Service("registry", ("docker-registry", "serve", f"{state}/registry.yaml")),
        Service("git", (sys.executable, "-m", "tests.testbed.githttp", str(state / "git"))),
        Service("kube-apiserver", _api_server(state), api.ready),
        Service("forward", (sys.executable, "-m", "tests.testbed.forward", str(forwarded))),
        Service("kube-controller-manager", _controller_manager(state, config)),
        Service("kube-scheduler", (_kubernetes("kube-scheduler"), f"--kubeconfig={config}", "--leader-elect=false")),
        Service("kubelet", _kubelet(state, config)),
        Service("coredns", (str(gobuild.binary(COREDNS, "coredns")), "-conf", f"{state}/Corefile")),
        Service("kube-proxy", _proxy(config), api.cluster_ready),
    ]


class ApiServer:
    """Asks the API server from inside the node, as the administrator."""

    def __init__(self, state: Path) -> None:
        self._pki = state / "pki"

    def ready(self) -> bool:
        """Whether the API server calls itself ready."""
        return self._get("/readyz") is not None

    def cluster_ready(self) -> bool:
        """Whether a pod created now would run, resolve names and reach services."""
        return (
            self._node_ready()
            # Pods are refused until their service account is there.
            and self._get("/api/v1/namespaces/default/serviceaccounts/default") is not None
            and _answers(addresses.COREDNS_READY_PORT, "/ready")
            and _answers(addresses.PROXY_HEALTH_PORT, "/healthz")
        )

    def _node_ready(self) -> bool:
        node = self._get(f"/api/v1/nodes/{NODE_NAME}")
        if node is None:
            return False
        conditions: list[dict[str, str]] = json.loads(node)["status"].get("conditions", [])
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    def _get(self, path: str) -> bytes | None:
        context = ssl.create_default_context(cafile=str(self._pki / "ca.crt"))
        context.load_cert_chain(self._pki / "admin.crt", self._pki / "admin.key")
        return _get(http.client.HTTPSConnection("127.0.0.1", addresses.API_PORT, timeout=5, context=context), path)


def _etcd(state: Path) -> tuple[str, ...]:
    return (
        str(gobuild.binary(ETCD, "etcd")),
        f"--data-dir={state}/memory/etcd",
        # Nothing here outlives the machine, so nothing has to reach its disk.
        "--unsafe-no-fsync",
        "--listen-client-urls=http://127.0.0.1:2379",
        "--advertise-client-urls=http://127.0.0.1:2379",
        "--listen-peer-urls=http://127.0.0.1:2380",
    )


def _api_server(state: Path) -> tuple[str, ...]:
    pki = state / "pki"
    return (
        _kubernetes("kube-apiserver"),
        "--etcd-servers=http://127.0.0.1:2379",
        f"--tls-cert-file={pki}/api.crt",
        f"--tls-private-key-file={pki}/api.key",
        f"--client-ca-file={pki}/ca.crt",
        f"--kubelet-client-certificate={pki}/admin.crt",
        f"--kubelet-client-key={pki}/admin.key",
        "--kubelet-preferred-address-types=InternalIP",
        f"--secure-port={addresses.API_PORT}",
        f"--advertise-address={addresses.NODE}",
        f"--service-cluster-ip-range={addresses.SERVICES}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={pki}/sa.key",
        f"--service-account-key-file={pki}/sa.key",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
        f"--audit-policy-file={state}/audit-policy.yaml",
        f"--audit-log-path={state}/audit.log",
        # One file however long the run: megabytes after which it would be rotated.
        "--audit-log-maxsize=4000",
        # Old versions are forgotten within a test run, as they are on a server that has run for a while.
        "--etcd-compaction-interval=15s",
    )


def _controller_manager(state: Path, config: str) -> tuple[str, ...]:
    pki = state / "pki"
    return (
        _kubernetes("kube-controller-manager"),
        f"--kubeconfig={config}",
        f"--service-account-private-key-file={pki}/sa.key",
        f"--root-ca-file={pki}/ca.crt",
        f"--cluster-signing-cert-file={pki}/ca.crt",
        f"--cluster-signing-key-file={pki}/ca.key",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
    )


def _kubelet(state: Path, config: str) -> tuple[str, ...]:
    return (
        _kubernetes("kubelet"),
        f"--config={state}/kubelet.yaml",
        f"--kubeconfig={config}",
        f"--hostname-override={NODE_NAME}",
        f"--node-ip={addresses.NODE}",
    )


def _proxy(config: str) -> tuple[str, ...]:
    return (
        _kubernetes("kube-proxy"),
        f"--kubeconfig={config}",
        f"--hostname-override={NODE_NAME}",
        f"--cluster-cidr={addresses.PODS}",
        "--proxy-mode=iptables",
        # The size of the connection table belongs to the machine: only its own namespace may set it.
        "--conntrack-max-per-core=0",
        "--conntrack-min=0",
        f"--healthz-bind-address=127.0.0.1:{addresses.PROXY_HEALTH_PORT}",
    )


def _kubernetes(name: str) -> str:
    return str(gobuild.binary(KUBERNETES, name))


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
    except OSError:
        return False
    return True


def _answers(port: int, path: str) -> bool:
    return _get(http.client.HTTPConnection("127.0.0.1", port, timeout=5), path) is not None


def _get(connection: http.client.HTTPConnection, path: str) -> bytes | None:
    """The body of a 200, or None for any other outcome."""
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return body if answer.status == 200 else None
