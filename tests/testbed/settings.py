"""The configuration files of everything that runs on the node, written into its state directory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import yaml

from tests.testbed import addresses

if TYPE_CHECKING:
    from pathlib import Path

SANDBOX_IMAGE = "localhost/pause:1"


def write(state: Path, registry: Path) -> None:
    """Write all of them."""
    (state / "containerd.toml").write_text(_containerd(state))
    (state / "registry.d" / "_default").mkdir(parents=True)
    (state / "registry.d" / "_default" / "hosts.toml").write_text(_mirror())
    (state / "cni").mkdir()
    (state / "cni" / "10-pods.conflist").write_text(json.dumps(_pod_network()))
    (state / "Corefile").write_text(_corefile(state))
    for name, content in (
        ("registry.yaml", _registry(registry)),
        ("kubelet.yaml", _kubelet(state)),
        ("audit-policy.yaml", _audit_policy()),
    ):
        (state / name).write_text(yaml.safe_dump(content))


def _containerd(state: Path) -> str:
    # Without CAP_SYS_RESOURCE a container's OOM score cannot be lowered; the flag makes that no error.
    return f"""\
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{SANDBOX_IMAGE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{state}/cni"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{state}/registry.d"
"""


def _mirror() -> str:
    """Every registry's name leads to the one inside the node."""
    url = f"http://127.0.0.1:{addresses.REGISTRY_PORT}"
    return f'server = "{url}"\n[host."{url}"]\n  capabilities = ["pull", "resolve"]\n'


def _pod_network() -> dict[str, Any]:
    """Point-to-point links: all traffic between pods is routed, so service addresses work without bridge filtering."""
    ipam = {"type": "host-local", "ranges": [[{"subnet": addresses.PODS}]], "routes": [{"dst": "0.0.0.0/0"}]}
    return {
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [{"type": "ptp", "ipam": ipam}, {"type": "portmap", "capabilities": {"portMappings": True}}],
    }


def _corefile(state: Path) -> str:
    # Two blocks: within one, `template` would answer before `kubernetes`.
    return f"""\
cluster.local:53 in-addr.arpa:53 {{
  bind {addresses.NODE}
  errors
  ready 127.0.0.1:{addresses.COREDNS_READY_PORT}
  kubernetes cluster.local in-addr.arpa {{
    kubeconfig {state}/kubeconfig-node testbed
    pods insecure
    ttl 1
  }}
}}
.:53 {{
  bind {addresses.NODE}
  template ANY ANY {{
    rcode NXDOMAIN
  }}
}}
"""


def _registry(storage: Path) -> dict[str, Any]:
    return {
        "version": 0.1,
        "log": {"level": "warn"},
        "storage": {
            "filesystem": {"rootdirectory": str(storage)},
            "maintenance": {"readonly": {"enabled": True}},
        },
        "http": {"addr": f"127.0.0.1:{addresses.REGISTRY_PORT}"},
    }


def _kubelet(state: Path) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{state}/pki/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "failSwapOn": False,
        "failCgroupV1": False,
        "clusterDNS": [addresses.NODE],
        "clusterDomain": "cluster.local",
        "resolvConf": "/etc/resolv.conf",
        "maxPods": 400,
        "serializeImagePulls": False,
        "registryPullQPS": 0,
        "kubeAPIQPS": 100,
        "kubeAPIBurst": 200,
        # Image collection counts the machine's whole disk, and would remove the sandbox image too.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
    }


def _audit_policy() -> dict[str, Any]:
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata"}],
    }
