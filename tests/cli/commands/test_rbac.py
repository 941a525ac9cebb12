"""`windlass rbac`, and the errors that lead to it, as processes."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cli.commands.test_cluster import APPLICATIONS, api, kubeconfig, refused
from tests.kube.loopback_servers import serving
from tests.processes import Ended, windlass

if TYPE_CHECKING:
    from pathlib import Path

PLATFORM = """
apiVersion: windlass.dev/v1alpha1
kind: Platform
metadata: {name: small}
spec:
  stacks:
    - name: all
      applications:
        - {name: web, profile: simple, application: team/web}
        - {name: ready, profile: simple, resource: {apiVersion: gates.test/v1, kind: Gate, name: x}, dependsOn: [web]}
"""
NOT_ALLOWED = 'User "bob" cannot list resource "applications" in API group "argoproj.io" at the cluster scope'


def printed(*arguments: str) -> list[dict[str, Any]]:
    ended = windlass("rbac", *arguments)
    assert (ended.code, ended.stderr) == (0, ""), ended.output
    return list(yaml.safe_load_all(ended.stdout))


def test_the_platform_file_the_checks_and_the_options_say_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "dag.yaml").write_text(PLATFORM)
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "checks.test_Thing.lua").write_text("return {status = 'Healthy'}")
    files = ("--dag", str(tmp_path / "dag.yaml"), "--health-checks", str(tmp_path / "checks"))
    documents = printed("--for", "deploy", "--subject", "bob", "--api-group", "more.test", *files)
    assert {each["metadata"].get("namespace", "") for each in documents} == {"", "argocd", "team"}
    groups = {group for rule in documents[0]["rules"] if rule["resources"] == ["*"] for group in rule["apiGroups"]}
    assert groups == {"acid.zalan.do", "ceph.rook.io", "checks.test", "gates.test", "more.test"}
    assert documents[1]["subjects"] == [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}]


def test_without_a_subject_it_is_the_service_account_windlass() -> None:
    subject = {"kind": "ServiceAccount", "name": "windlass", "namespace": "argocd"}
    documents = printed("--for", "validate", "--for", "teardown", "--for", "validate")
    assert [each["subjects"] for each in documents[1::2]] == [[subject]] * 4


@pytest.mark.parametrize("arguments", [(), ("--for", "dance"), ("--for", "deploy", "--subject", "")])
def test_what_it_does_not_understand_is_3(arguments: tuple[str, ...]) -> None:
    assert windlass("rbac", *arguments).code == 3


async def validate_all(response: bytes, *arguments: str) -> Ended:
    async with serving(api({APPLICATIONS: response})) as server:
        data = base64.b64encode(kubeconfig(server.url)).decode()
        environ = {"KUBECONFIG_DATA": data, "ENVIRONMENT": "staging"}
        return await asyncio.to_thread(windlass, "validate", "--all", *arguments, environ=environ)


async def test_a_missing_right_is_no_rejected_credential() -> None:
    message = f"applications.argoproj.io is forbidden: {NOT_ALLOWED}"
    ended = await validate_all(refused(403, "Forbidden", message))
    assert ended.code == 1
    error, _, hint, sentence, command = ended.stderr.splitlines()[-5:]
    assert error == "error: user bob may not list applications.argoproj.io in the whole cluster (403 Forbidden)"
    assert hint == "hint:  the credentials are valid; an administrator can grant the right"
    assert sentence.startswith("next:  The credentials are valid, but lack rights")
    assert command == "       $ windlass rbac --for validate"
    assert "reject" not in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "action"),
    [((), "plan"), (("--refresh",), "deploy"), (("--action", "teardown"), "teardown")],
    ids=["plan", "refresh", "teardown"],
)
async def test_a_plan_needs_the_rights_of_what_it_does(tmp_path: Path, arguments: tuple[str, ...], action: str) -> None:
    (tmp_path / "dag.yaml").write_text(PLATFORM)
    environment = {"name": "staging", "domain": "x.test", "gitRepository": "https://git.test/x", "gitRevision": "main"}
    (tmp_path / "environment.yaml").write_text(yaml.safe_dump(environment))
    files = ("--dag", str(tmp_path / "dag.yaml"), "--environment-file", str(tmp_path / "environment.yaml"))
    refusal = refused(403, "Forbidden", NOT_ALLOWED)
    in_team = APPLICATIONS.replace("/applications", "/namespaces/team/applications")
    async with serving(api({APPLICATIONS: refusal, in_team: refusal})) as server:
        data = base64.b64encode(kubeconfig(server.url)).decode()
        environ = {"KUBECONFIG_DATA": data, "ENVIRONMENT": "staging"}
        ended = await asyncio.to_thread(windlass, "plan", *arguments, *files, environ=environ)
    assert ended.code == 1, ended.output
    assert f"$ windlass rbac --for {action} --dag {tmp_path}" in ended.stderr


async def test_a_rejected_credential_is_no_missing_right() -> None:
    ended = await validate_all(refused(401, "Unauthorized", "Unauthorized"))
    assert ended.code == 1
    assert "next:  The cluster rejected the credentials" in ended.stderr
    assert "rbac" not in ended.stderr


async def test_another_refusal_promises_no_right() -> None:
    ended = await validate_all(refused(403, "Forbidden", 'admission webhook "x" denied the request: no'))
    assert "hint:  a rule of the cluster refuses it, such as an admission webhook or a quota" in ended.stderr
    assert "rbac" not in ended.stderr
