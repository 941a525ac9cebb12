"""`import` on an Argo CD that somebody else left; on virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.operations import brownfields
from tests.operations.brownfields import APPS, FILES, NEEDS, SETS, STACKS, TARGETS, child
from tests.operations.clusters import after, begin, cluster
from tests.sandbox.controllers.clusters import QUICK, run, world
from tests.sandbox.controllers.objects import CASCADE, URL, application
from windlass.core.platform.drafting.platform_yaml import render_platform
from windlass.errors import WindlassError
from windlass.kube.api_errors import Forbidden
from windlass.kube.client.readers import KubeReader
from windlass.kube.transport.calls import CallSender
from windlass.operations.import_ import import_platform
from windlass.operations.observation import ObservedCluster
from windlass.sandbox.apiserver.requests import UserInfo
from windlass.sandbox.argocd.repositories import MemoryRepository
from windlass.settings.platform_files import PlatformFile
from windlass.settings.platforms import PlatformDefinition, assemble_platform
from windlass.settings.yaml_positions import ParsedFile, parse_file
from windlass.simulation import virtual_time
from windlass.simulation.in_process_transport import USER_AGENT, InProcessTransport

if TYPE_CHECKING:
    from tests.sandbox.controllers.clusters import World
    from windlass.core.platform.model.applications import Platform
    from windlass.operations.import_ import ImportResult


async def imported(w: World, reader: ObservedCluster | None = None) -> ImportResult:
    found = await import_platform(reader or cluster(w))
    assert w.kube.counts.writes == 0
    assert not [entry for entry in w.sandbox.server.journal.writes() if entry.agent == USER_AGENT]
    return found


def loaded(found: ImportResult) -> Platform:
    document = parse_file(render_platform(found.draft, found.notices).encode(), "dag.yaml", PlatformFile)
    assert isinstance(document, ParsedFile), document
    made = assemble_platform(document)
    assert isinstance(made, PlatformDefinition), made
    return made.platform


async def brownfield(w: World) -> None:
    w.argocd.repositories[URL] = MemoryRepository(FILES)
    await brownfields.grow(w.sandbox.client())
    await after(30)


def test_a_brownfield_becomes_a_platform() -> None:
    async def main() -> ImportResult:
        async with world() as w:
            await brownfield(w)
            before = await w.sandbox.client().list(APPS)
            found = await imported(w)
            asked = w.kube.counts.by_verb_and_kind
            assert asked == {("list", APPS): 1, ("list", SETS): 1, ("get", "configmaps"): 1}
            assert await w.sandbox.client().list(APPS) == before
            return found

    found = run(main())
    platform = loaded(found)
    assert {name: str(node.target) for name, node in platform.applications.items()} == TARGETS
    assert platform.graph.dependencies == NEEDS
    assert {stack.name: set(stack.applications) for stack in platform.stacks} == STACKS
    assert (found.application_count, found.application_set_count) == (11, 1)
    assert found.notices == ("grafana: windlass.dev/depends-on names 'nobody', which is no Application here",)


@pytest.mark.parametrize("how", ["rows", "settings"])
def test_children_do_not_wait_for_a_parent_that_is_as_healthy_as_they_are(how: str) -> None:
    async def main() -> ImportResult:
        async with world() as w:
            w.argocd.applications_have_health = w.argocd.persists_health = how == "rows"
            await begin(
                w, {"root/apps.yaml": [child("a"), child("b")]}, application("root", syncPolicy={"automated": {}})
            )
            if how == "settings":
                data = {"resource.customizations.health.argoproj.io_Application": "return {status = 'Healthy'}"}
                await w.sandbox.client().create(
                    "configmaps", {"metadata": {"name": "argocd-cm"}, "data": data}, "argocd"
                )
            await after(10)
            return await imported(w)

    assert loaded(run(main())).graph.dependencies == {"a": (), "b": (), "root": ()}


def test_what_goes_is_left_out() -> None:
    async def main() -> ImportResult:
        async with world() as w:
            going = application("going")
            going["metadata"]["finalizers"] = [CASCADE, "test/never"]
            await begin(w, {}, application("web"), going)
            await w.sandbox.client().delete(APPS, "going", "argocd")
            return await imported(w)

    found = run(main())
    assert list(loaded(found).applications) == ["web"]
    assert found.notices == ("going is being deleted: it is left out",)


@pytest.mark.parametrize("what", ["nothing", "going"])
def test_without_applications_there_is_nothing_to_import(what: str) -> None:
    async def main() -> None:
        async with world() as w:
            if what == "going":
                await begin(w, {}, application("web"))
                await w.sandbox.client().delete(APPS, "web", "argocd")
            with pytest.raises(WindlassError, match="there are no Applications") as refused:
                await import_platform(cluster(w))
            assert refused.value.exit_code == 1

    run(main())


def test_a_cluster_without_argo_cd() -> None:
    async def main() -> None:
        async with world() as w:
            await w.sandbox.client().delete("customresourcedefinitions.apiextensions.k8s.io", APPS)
            await after(1)
            with pytest.raises(WindlassError, match="not served here"):
                await import_platform(cluster(w))

    run(main())


def test_an_argo_cd_without_application_sets() -> None:
    async def main() -> ImportResult:
        async with world() as w:
            await begin(w, {})
            await w.sandbox.client().delete("customresourcedefinitions.apiextensions.k8s.io", SETS)
            await after(1)
            found = await imported(w)
            assert ("list", SETS) in w.kube.counts.by_verb_and_kind
            return found

    assert run(main()).notices == ()


RULES = {
    "applications": {"apiGroups": ["argoproj.io"], "resources": ["applications"], "verbs": ["list"]},
    "sets": {"apiGroups": ["argoproj.io"], "resources": ["applicationsets"], "verbs": ["list"]},
    "settings": {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
}
NO_OTHERS = "only Applications in argocd are read: no right to list those of all namespaces"
NO_SETS = "you may not list ApplicationSets: their steps and sync waves are left out"


async def imported_by_jane(w: World, *rights: str) -> ImportResult:
    """Somebody who may do no more than that, and only in Argo CD's namespace."""
    calls = w.sandbox.client()
    role = {"metadata": {"name": "jane"}, "rules": [RULES[name] for name in rights]}
    await calls.create("roles.rbac.authorization.k8s.io", role, "argocd")
    subject = {"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}
    reference = {"kind": "Role", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}
    binding = {"metadata": {"name": "jane"}, "subjects": [subject], "roleRef": reference}
    await calls.create("rolebindings.rbac.authorization.k8s.io", binding, "argocd")
    transport = InProcessTransport(w.sandbox, UserInfo("jane"))
    reader = KubeReader(CallSender(transport, clock=virtual_time.virtual_clock(), limits=QUICK))
    w.sandbox.server.authorizer.enforce = True
    try:
        return await imported(w, ObservedCluster(reader, reader.clock.now))
    finally:
        w.sandbox.server.authorizer.enforce = False


@pytest.mark.parametrize(
    ("rights", "notices", "changes"),
    [
        (["applications", "sets", "settings"], [NO_OTHERS], {}),
        (["applications", "settings"], [NO_OTHERS, NO_SETS], {"tenant-a": ()}),
        (
            ["applications", "sets"],
            [NO_OTHERS, "that children wait for their parents is left out"],
            {"postgres": (), "prometheus": ("keycloak", "vault"), "grafana": ("keycloak", "prometheus", "vault")},
        ),
    ],
)
def test_somebody_with_few_rights_gets_what_they_may_see(
    rights: list[str], notices: list[str], changes: dict[str, tuple[str, ...]]
) -> None:
    async def main() -> ImportResult:
        async with world() as w:
            await brownfield(w)
            return await imported_by_jane(w, *rights)

    found = run(main())
    expected = {name: needs for name, needs in NEEDS.items() if name != "team-vault"} | changes
    assert loaded(found).graph.dependencies == expected
    assert len(found.notices) == len(notices) + 1
    for notice, words in zip(found.notices, notices, strict=False):
        assert notice.endswith(words)


def test_somebody_without_rights_is_told() -> None:
    async def main() -> None:
        async with world() as w:
            await brownfield(w)
            with pytest.raises(Forbidden):
                await imported_by_jane(w, "sets")

    run(main())
