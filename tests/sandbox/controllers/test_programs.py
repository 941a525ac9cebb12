"""Images that really run something: argv, environment, token, log and exit code of a container are real."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from tests.sandbox.controllers.clusters import after, run
from tests.sandbox.controllers.objects import job
from windlass.sandbox.controllers.installation import install_workloads
from windlass.sandbox.sandbox import Sandbox
from windlass.simulation.virtual_time import virtual_sandbox_clock

if TYPE_CHECKING:
    from windlass.sandbox.controllers.programs import Process, Program

JOBS, RBAC = "jobs.batch", "rbac.authorization.k8s.io"
VARIABLES = [
    {"name": "GREETING", "value": "hello"},
    {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "secret", "key": "password"}}},
    {"name": "NOTHING", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "x", "optional": True}}},
]
SECRET = {"metadata": {"name": "secret"}, "data": {"password": base64.b64encode(b"hidden").decode()}}


def runs(*args: str, restart: str = "Never", **spec: Any) -> dict[str, Any]:
    body = job("windlass:1", restart=restart, **spec)
    pod = body["spec"]["template"]["spec"]
    pod["serviceAccountName"] = "runner"
    pod["containers"][0] |= {"args": list(args), "env": VARIABLES, "envFrom": [{"configMapRef": {"name": "settings"}}]}
    return body


async def prepare(sandbox: Sandbox) -> None:
    """An account that may create ConfigMaps and nothing else."""
    calls = sandbox.client()
    await calls.create("serviceaccounts", {"metadata": {"name": "runner"}}, "default")
    await calls.create("secrets", SECRET, "default")
    await calls.create("configmaps", {"metadata": {"name": "settings"}, "data": {"LEVEL": "debug"}}, "default")
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}]
    await calls.create(f"roles.{RBAC}", {"metadata": {"name": "runner"}, "rules": rules}, "default")
    subjects = [{"kind": "ServiceAccount", "name": "runner", "namespace": "default"}]
    role = {"apiGroup": RBAC, "kind": "Role", "name": "runner"}
    body = {"metadata": {"name": "runner"}, "subjects": subjects, "roleRef": role}
    await calls.create(f"rolebindings.{RBAC}", body, "default")


def creating(sandbox: Sandbox, seen: list[Process]) -> Program:
    """A program that tries to create things and tells how that went; its exit code is the number of its arguments."""

    async def program(process: Process) -> int:
        seen.append(process)
        headers = {"Authorization": f"Bearer {process.token()}", "Content-Type": "application/json"}
        for plural in ("configmaps", "secrets"):
            path = f"/api/v1/namespaces/default/{plural}"
            answer = await sandbox.handle("POST", path, headers, b'{"metadata":{"name":"made"}}')
            process.log(f"{plural}: {answer.code}")
            await after(30)
        return len(process.argv)

    return program


def test_a_job_runs_its_argv_under_the_token_of_its_pod() -> None:
    seen: list[Process] = []

    async def main() -> None:
        async with Sandbox(virtual_sandbox_clock(1), enforce_rbac=True) as sandbox:
            workloads, calls = await install_workloads(sandbox), sandbox.client()
            workloads.programs.by_image["windlass:*"] = creating(sandbox, seen)
            await prepare(sandbox)
            await calls.create(JOBS, runs("deploy", "--name=$(GREETING)", "x", backoffLimit=0), "default")
            await after(45)
            (pod,) = await calls.list("pods", "default")
            assert (pod["status"]["phase"], seen[0].env["POD"]) == ("Running", pod["metadata"]["name"])
            await after(60)
            (pod,) = await calls.list("pods", "default")
            state = pod["status"]["containerStatuses"][0]["state"]["terminated"]
            assert (state["exitCode"], state["reason"], pod["status"]["phase"]) == (3, "Error", "Failed")
            assert (await calls.get(JOBS, "run", "default"))["status"]["failed"] == 1
            bearer = {"Authorization": f"Bearer {sandbox.server.authenticator.admin_token}"}
            path = f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}/log"
            assert (await sandbox.handle("GET", path, bearer)).body == b"configmaps: 201\nsecrets: 403\n"
            mine = [e for e in sandbox.server.journal.entries if e.user == "system:serviceaccount:default:runner"]
            assert [(e.kind, e.code) for e in mine] == [("configmaps", 201), ("secrets", 403)]

    run(main())
    (process,) = seen
    assert process.argv == ("deploy", "--name=hello", "x")
    expected = {"GREETING": "hello", "PASSWORD": "hidden", "LEVEL": "debug", "NOTHING": None}
    assert {name: process.env.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("restart", "codes", "restarts", "phase"),
    [
        ("Never", [0], 0, "Succeeded"),
        ("OnFailure", [4, 0], 1, "Succeeded"),
        ("OnFailure", [4, 5, 0], 2, "Succeeded"),
    ],
)
def test_a_program_that_fails_is_run_again_as_its_pod_says(
    restart: str, codes: list[int], restarts: int, phase: str
) -> None:
    async def main() -> None:
        async with Sandbox(virtual_sandbox_clock(1)) as sandbox:
            left = list(codes)

            async def program(process: Process) -> int:
                await after(1)
                return left.pop(0)

            workloads = await install_workloads(sandbox)
            workloads.programs.by_image["windlass:1"] = program
            await prepare(sandbox)
            await sandbox.client().create(JOBS, runs(restart=restart), "default")
            await after(60)
            (pod,) = await sandbox.client().list("pods", "default")
            (row,) = pod["status"]["containerStatuses"]
            assert (pod["status"]["phase"], row["restartCount"], left) == (phase, restarts, [])
            before = [row["lastState"]["terminated"]["exitCode"]] if restarts else []
            assert before == codes[-2:-1]

    run(main())


def test_a_program_that_breaks_is_a_container_that_failed_and_one_in_the_way_is_asked_to_stop() -> None:
    async def main() -> list[str]:
        async with Sandbox(virtual_sandbox_clock(1)) as sandbox:
            told: list[str] = []

            async def program(process: Process) -> int:
                if not process.argv:
                    raise ValueError("no arguments")
                try:
                    await after(3600)
                finally:
                    await after(2)
                    told.append("stopped")
                return 0

            workloads = await install_workloads(sandbox)
            workloads.programs.by_image["*"] = program
            await prepare(sandbox)
            calls = sandbox.client()
            await calls.create(JOBS, runs(backoffLimit=0), "default")
            await after(5)
            (pod,) = await calls.list("pods", "default")
            assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 1
            assert list(sandbox.server.subresources.logs.values()) == ["ValueError: no arguments\n"]
            await calls.delete(JOBS, "run", "default")
            await after(5)
            await calls.create(JOBS, runs("wait"), "default")
            await after(5)
            await calls.delete(JOBS, "run", "default")
            await after(1)
            assert len(await calls.list("pods", "default")) == 1
            await after(3)
            assert await calls.list("pods", "default") == []
            return told

    assert run(main()) == ["stopped"]


def test_a_container_waits_for_an_environment_that_is_not_there() -> None:
    async def main() -> None:
        async with Sandbox(virtual_sandbox_clock(1)) as sandbox:

            async def program(process: Process) -> int:
                return 0

            workloads = await install_workloads(sandbox)
            workloads.programs.by_image["*"] = program
            await prepare(sandbox)
            calls = sandbox.client()
            await calls.delete("secrets", "secret", "default")
            await calls.create(JOBS, runs(), "default")
            await after(5)
            (pod,) = await calls.list("pods", "default")
            waiting = pod["status"]["containerStatuses"][0]["state"]["waiting"]
            assert waiting["reason"] == "CreateContainerConfigError"
            await calls.create("secrets", SECRET, "default")
            await after(15)
            assert (await calls.get(JOBS, "run", "default"))["status"]["succeeded"] == 1

    run(main())
