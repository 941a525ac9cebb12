"""Repositories with manifests that no one should read: the Application says so, and the sandbox goes on."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from tests.sandbox.controllers.clusters import after, begin, run, world
from windlass.sandbox.argocd.repositories import ComparisonFailure, Repositories
from windlass.sandbox.sandbox import Sandbox
from windlass.simulation.virtual_time import virtual_sandbox_clock

if TYPE_CHECKING:
    from pathlib import Path

APPS = "applications.argoproj.io"
MANIFEST = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"
ALIASES = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10 if n else 'x')}]\n" for n in range(12))
CHAIN = "".join(f"a{n}: &a{n} [{f'*a{n - 1}' if n else 'x'}]\n" for n in range(500))
HOSTILE = {
    "deep YAML": "- " * 1_000_000,
    "deep YAML in one line": "[" * 1_000_000,
    "deep JSON": "{" + '"a":[' * 200_000,
    "aliases that stand for billions of values": ALIASES,
    "aliases that nest deeply": CHAIN,
    "an object that contains itself": f"{MANIFEST}data: &a [*a]\n",
    "no kind": "apiVersion: v1\nmetadata: {name: web}\n",
    "a kind that is a number": MANIFEST.replace("ConfigMap", "1"),
    "no apiVersion": "kind: ConfigMap\nmetadata: {name: web}\n",
    "no metadata": "apiVersion: v1\nkind: ConfigMap\n",
    "metadata that are a list": "apiVersion: v1\nkind: ConfigMap\nmetadata: [web]\n",
    "no name": "apiVersion: v1\nkind: ConfigMap\nmetadata: {labels: {}}\n",
    "a List without items": "apiVersion: v1\nkind: List\n",
    "a List of nothing": "apiVersion: v1\nkind: List\nitems: 1\n",
    "a List of texts": "apiVersion: v1\nkind: List\nitems: [a]\n",
    "a text": "just a text\n",
    "a number that is none": "a: !!int x\n",
    "control characters": "a: \x00\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_application_shows_what_is_wrong_with_its_source(name: str) -> None:
    async def main() -> dict[str, Any]:
        async with world() as w:
            await begin(w, {"web/all.yaml": HOSTILE[name]})
            await after(10)
            return await w.sandbox.client().get(APPS, "web", "argocd")

    (condition,) = run(main())["status"]["conditions"]
    assert condition["type"] == "ComparisonError"
    assert "failed to unmarshal manifest" in condition["message"]


def test_a_manifest_as_deep_as_it_may_be_is_deployed() -> None:
    depth = 90
    body = f'{{"apiVersion":"deep.test/v1","kind":"Deep","metadata":{{"name":"web"}},"x":{"[" * depth}{"]" * depth}}}'

    async def main() -> dict[str, Any]:
        async with world() as w:
            await begin(w, {"web/all.yaml": body, "web/crd.yaml": DEEP_KIND})
            sync = {"operation": {"sync": {"revision": "main"}}}
            await w.sandbox.client().patch(APPS, "web", sync, "argocd")
            await after(30)
            return await w.sandbox.client().get("deeps.deep.test", "web")

    assert str(run(main())["x"]).count("[") == depth


DEEP_KIND = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: deeps.deep.test}
spec:
  group: deep.test
  scope: Cluster
  names: {kind: Deep, plural: deeps}
  versions:
  - {name: v1, served: true, storage: true,
     schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
"""


def test_files_that_cannot_be_read_as_text_are_told(tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ComparisonFailure, match="failed to read"):
        Repositories().open(str(tmp_path)).resolve("HEAD")


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe.yaml")
    repository = Repositories().open(str(tmp_path))
    assert repository.files(repository.resolve("HEAD")) == {}


def test_a_controller_that_fails_is_reported_and_goes_on() -> None:
    async def main(reported: list[str] | None) -> int:
        clock, calls = virtual_sandbox_clock(), 0
        async with Sandbox(clock, report_error=reported.append if reported is not None else None) as sandbox:

            async def controller() -> None:
                nonlocal calls
                calls += 1
                if calls < 3:
                    raise KeyError("kind")

            sandbox.start(sandbox.repeat(controller), name="a controller")
            await clock.sleep(10)
        return calls

    lines: list[str] = []
    assert run(main(lines)) == 3
    assert len(lines) == 2
    assert lines[0].endswith("controller: KeyError: 'kind'")
    with pytest.raises(ExceptionGroup):
        run(main(None))
