"""Habits of single built-in kinds that the product meets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contracts.kinds import DEPLOYMENTS, JOBS, SECRETS, SERVICES, deployment, pod, pod_spec, secret, service
from tests.contracts.servers import MERGE
from windlass.kube.client.resources import PODS, SERVICE_ACCOUNTS

if TYPE_CHECKING:
    from tests.contracts.servers import Raw


@pytest.fixture
def namespace(shared_namespace: str) -> str:
    """These tests need only names of their own."""
    return shared_namespace


async def test_text_of_a_secret_is_kept_encoded(raw: Raw, namespace: str, name: str) -> None:
    item = {**secret(name, {"a": "MQ=="}), "stringData": {"a": "2", "b": "ü"}}
    created = await raw.ok("POST", SECRETS.in_namespace(namespace).path, item)
    assert created["data"] == {"a": "Mg==", "b": "w7w="}
    assert "stringData" not in created
    assert created["type"] == "Opaque"


async def test_a_value_of_a_secret_that_is_not_encoded_is_refused(raw: Raw, namespace: str, name: str) -> None:
    answer = await raw("POST", SECRETS.in_namespace(namespace).path, secret(name, {"a": "not base64!"}))
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert "illegal base64 data" in answer.message


async def test_the_type_of_a_secret_does_not_change(raw: Raw, namespace: str, name: str) -> None:
    path = SECRETS.in_namespace(namespace).path
    await raw.ok("POST", path, secret(name))
    answer = await raw("PATCH", f"{path}/{name}", {"type": "other"}, MERGE)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert [cause["field"] for cause in answer.causes] == ["type"]


async def test_a_service_gets_an_address_that_it_keeps(raw: Raw, namespace: str, name: str) -> None:
    path = SERVICES.in_namespace(namespace).path
    created = await raw.ok("POST", path, service(name, ("http", 80)))
    assert created["spec"]["type"] == "ClusterIP"
    assert created["spec"]["clusterIPs"] == [created["spec"]["clusterIP"]]
    assert created["spec"]["ports"] == [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": 80}]
    replaced = await raw.ok("PUT", f"{path}/{name}", service(name, ("http", 81)))
    assert replaced["spec"]["clusterIP"] == created["spec"]["clusterIP"]


async def test_a_headless_service_gets_no_address(raw: Raw, namespace: str, name: str) -> None:
    item = service(name, ("http", 80))
    item["spec"]["clusterIP"] = "None"
    created = await raw.ok("POST", SERVICES.in_namespace(namespace).path, item)
    assert created["spec"]["clusterIP"] == "None"


async def test_a_pod_needs_its_account(raw: Raw, namespace: str, name: str) -> None:
    answer = await raw("POST", PODS.in_namespace(namespace).path, pod(name, account="nobody"))
    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert f'pods "{name}" is forbidden: error looking up service account {namespace}/nobody' in answer.message


async def test_a_pod_begins_pending_and_without_a_node_goes_at_once(raw: Raw, namespace: str, name: str) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    await raw.ok("POST", SERVICE_ACCOUNTS.in_namespace(namespace).path, account)
    path = PODS.in_namespace(namespace).path
    item = pod(name, account=name)
    item["spec"]["terminationGracePeriodSeconds"] = 30
    created = await raw.ok("POST", path, item)
    assert created["status"]["phase"] == "Pending"
    assert created["metadata"]["generation"] == 1
    await raw.ok("DELETE", f"{path}/{name}")
    assert (await raw("GET", f"{path}/{name}")).status == 404


async def test_a_job_has_a_generation_and_its_labels_filled_in(raw: Raw, namespace: str, name: str) -> None:
    template = {"spec": {**pod_spec(), "restartPolicy": "Never"}}
    item = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}}
    given = {"suspend": True, "template": template}
    created = await raw.ok("POST", JOBS.in_namespace(namespace).path, {**item, "spec": given})
    uid = created["metadata"]["uid"]
    assert created["metadata"]["generation"] == 1
    spec = created["spec"]
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    labels = spec["template"]["metadata"]["labels"]
    assert labels["job-name"] == labels["batch.kubernetes.io/job-name"] == name
    assert (spec["backoffLimit"], spec["completions"], spec["parallelism"]) == (6, 1, 1)
    assert spec["completionMode"] == "NonIndexed"


async def test_defaults_of_a_deployment(raw: Raw, namespace: str, name: str) -> None:
    item = deployment(name)
    del item["spec"]["replicas"]
    created = await raw.ok("POST", f"{DEPLOYMENTS.in_namespace(namespace).path}?dryRun=All", item)
    spec = created["spec"]
    assert (spec["replicas"], spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (1, 10, 600)
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
    container = spec["template"]["spec"]["containers"][0]
    assert (container["imagePullPolicy"], container["terminationMessagePolicy"]) == ("IfNotPresent", "File")
    assert spec["template"]["spec"]["restartPolicy"] == "Always"
