"""Bodies in protobuf, as kubectl 1.34 sends them for `kubectl create`: recorded, and in the namespace `default`."""

from __future__ import annotations

import base64
import uuid
from typing import TYPE_CHECKING

import pytest

from tests.contracts.kinds import DEPLOYMENTS, JOBS, NAMESPACES, ROLE_BINDINGS, SECRETS, SERVICES

if TYPE_CHECKING:
    from tests.contracts.servers import Raw
    from windlass.kube.client.objects import RawObject
    from windlass.kube.client.resources import Resource

PROTOBUF = "application/vnd.kubernetes.protobuf"
DEPLOYMENT = (
    "azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50EsEBCiYKA3dlYhIAGgdkZWZhdWx0IgAqADIAOABCAFoKCgNhcHASA3dlYhKIAQgCEgwKCgoDYX"
    "BwEgN3ZWIabgocCgASABoAIgAqADIAOABCAFoKCgNhcHASA3dlYhJOEjAKBW5naW54EgduZ2lueDoxKgAyCgoAEAAYUCIAKgBCAGoAcgCAAQCI"
    "AQCQAQCiAQAaADIAQgBKAFIAWABgAGgAggEAigEAmgEAwgEAIgIKACgAOAAaDAgAEAAYACAAKAA4ABoAIgA="
)
JOB = (
    "azhzAAoPCghiYXRjaC92MRIDSm9iEo8BChsKBG9uY2USABoHZGVmYXVsdCIAKgAyADgAQgASZjJkChAKABIAGgAiACoAMgA4AEIAElASLQoEb2"
    "5jZRIHYnVzeWJveBoEZWNobxoCaGkqAEIAagByAIABAIgBAJABAKIBABoFTmV2ZXIyAEIASgBSAFgAYABoAIIBAIoBAJoBAMIBABoIIAAoADAA"
    "OgAaACIA"
)
SERVICE = (
    "azhzAAoNCgJ2MRIHU2VydmljZRJwCiYKA3dlYhIAGgdkZWZhdWx0IgAqADIAOABCAFoKCgNhcHASA3dlYhJCChsKBzgwLTgwODASA1RDUBhQIg"
    "cIABCQPxoAKAASCgoDYXBwEgN3ZWIaACIJQ2x1c3RlcklQOgBCAFIAWgBgAGgAGgIKABoAIgA="
)
SECRET = "azhzAAoMCgJ2MRIGU2VjcmV0EiQKGAoBcxIAGgdkZWZhdWx0IgAqADIAOABCABIGCgFhEgFiGgAaACIA"
ROLE_BINDING = (
    "azhzAAorChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEgtSb2xlQmluZGluZxKKAQoYCgFyEgAaB2RlZmF1bHQiACoAMgA4AEIAEigKBF"
    "VzZXISGXJiYWMuYXV0aG9yaXphdGlvbi5rOHMuaW8aA2JvYiIAEh4KDlNlcnZpY2VBY2NvdW50EgAaAXgiB2RlZmF1bHQaJAoZcmJhYy5hdXRo"
    "b3JpemF0aW9uLms4cy5pbxIEUm9sZRoBchoAIgA="
)


async def create(raw: Raw, resource: Resource, namespace: str, recorded: str) -> RawObject:
    """The object that the server makes of the body; no namespace in it may differ from that of the path."""
    body = base64.b64decode(recorded).replace(b"\x1a\x07default", b"\x1a\x07" + namespace.encode())
    found: RawObject = await raw.ok("POST", resource.in_namespace(namespace).path, body, PROTOBUF)
    return found


@pytest.fixture
async def short(raw: Raw) -> str:
    """A namespace whose name is as long as the recorded one, so that no length in a body changes."""
    name = f"p{uuid.uuid4().hex[:6]}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await raw.ok("POST", NAMESPACES.everywhere.path, body)
    return name


async def test_create_deployment(raw: Raw, short: str) -> None:
    made = await create(raw, DEPLOYMENTS, short, DEPLOYMENT)
    spec = made["spec"]
    assert (made["metadata"]["name"], made["metadata"]["labels"]) == ("web", {"app": "web"})
    assert (spec["replicas"], spec["selector"]) == (2, {"matchLabels": {"app": "web"}})
    assert spec["template"]["metadata"]["labels"] == {"app": "web"}
    [container] = spec["template"]["spec"]["containers"]
    assert (container["name"], container["image"]) == ("nginx", "nginx:1")
    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert spec["strategy"]["type"] == "RollingUpdate"


async def test_create_job(raw: Raw, short: str) -> None:
    spec = (await create(raw, JOBS, short, JOB))["spec"]["template"]["spec"]
    [container] = spec["containers"]
    assert (container["image"], container["command"], spec["restartPolicy"]) == ("busybox", ["echo", "hi"], "Never")


async def test_create_service(raw: Raw, short: str) -> None:
    spec = (await create(raw, SERVICES, short, SERVICE))["spec"]
    assert spec["ports"] == [{"name": "80-8080", "protocol": "TCP", "port": 80, "targetPort": 8080}]
    assert (spec["selector"], spec["type"]) == ({"app": "web"}, "ClusterIP")


async def test_create_secret(raw: Raw, short: str) -> None:
    made = await create(raw, SECRETS, short, SECRET)
    assert (made["data"], made["type"]) == ({"a": "Yg=="}, "Opaque")


async def test_create_role_binding(raw: Raw, short: str) -> None:
    made = await create(raw, ROLE_BINDINGS, short, ROLE_BINDING)
    group = "rbac.authorization.k8s.io"
    assert made["roleRef"] == {"apiGroup": group, "kind": "Role", "name": "r"}
    assert made["subjects"][0] == {"apiGroup": group, "kind": "User", "name": "bob"}


async def test_a_body_that_is_no_protobuf_is_refused(raw: Raw, short: str) -> None:
    path = SECRETS.in_namespace(short).path
    for body in (b"k8s\0\xff\xff\xff", b"nothing", base64.b64decode(SECRET)[:-20]):
        assert (await raw("POST", path, body, PROTOBUF)).status in {400, 415}
