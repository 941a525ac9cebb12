"""Platforms that are deployed on virtual time, so that they can be torn down; and the journal as witness of how."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.builders import platform
from tests.operations.clusters import APPS
from tests.run_contexts import run_context
from tests.sandbox.controllers.objects import URL, application, config, workload
from windlass.argo.cd.root_application import RootApplication
from windlass.core.platform.model.scopes import parse_scope
from windlass.core.platform.reporting.reports import Action
from windlass.core.platform.teardown.volumes import VolumePolicy
from windlass.operations import deploy
from windlass.operations import plan as plan_operation
from windlass.operations.planner import RunRequest
from windlass.operations.run.context import RunContext, RunControl
from windlass.operations.teardown import teardown
from windlass.sandbox.argocd.repositories import MemoryRepository
from windlass.simulation.in_process_transport import USER_AGENT

if TYPE_CHECKING:
    from tests.sandbox.controllers.clusters import World
    from windlass.core.platform.events import Event
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.reporting.reports import Report
    from windlass.sandbox.apiserver.journal import JournalEntry
    from windlass.sandbox.apiserver.store import StoreChange

Body = dict[str, Any]
ROOT = RootApplication(URL, "main", "root", {})
AUTOMATED: Body = {"syncPolicy": {"automated": {"prune": True, "selfHeal": True}}}
OWN: Body = {"syncPolicy": {"syncOptions": ["CreateNamespace=true"]}}


@dataclass(slots=True)
class Stand:
    """A world with a platform in it. `objects`: of each application, in its own folder of the repository."""

    world: World
    platform: Platform
    objects: dict[str, list[Body]] = field(default_factory=dict)
    apps: dict[str, Body] = field(default_factory=dict)
    extra: Body = field(default_factory=dict)
    """Further files of the repository."""
    events: list[Event] = field(default_factory=list)

    def files(self) -> Body:
        names = self.platform.graph.names
        files: Body = {f"{name}/all.yaml": self.objects.get(name, [config(name)]) for name in names}
        files |= self.extra
        files["root/Chart.yaml"] = {"name": "root", "version": "1.0.0"}
        for name in names:
            made = self.apps.get(name) or application(name)
            made["spec"]["source"]["targetRevision"] = "{{ .Values.targetRevision }}"
            files[f"root/templates/{name}.yaml"] = made
        return files

    def access(self, **changes: Any) -> RunContext:
        given = {"client": self.world.kube, "run_id": "11111111-0000", "control": RunControl(self.events.append)}
        return run_context(**{**given, **changes})

    async def deployed(self) -> None:
        self.world.argocd.repositories[URL] = MemoryRepository(self.files())
        wish = RunRequest(Action.DEPLOY, "development", self.platform, parse_scope("platform"), frozenset(), ROOT)
        report = await deploy.deploy(self.access(), wish)
        assert report.summary.exit_code == 0, report.failures

    async def torn_down(
        self, scope: str = "platform", policy: str = "retain", foreign: tuple[str, ...] = (), **changes: Any
    ) -> Report:
        return await teardown.teardown(self.access(**changes), self.request(scope, policy, foreign))

    def request(self, scope: str = "platform", policy: str = "retain", foreign: tuple[str, ...] = ()) -> RunRequest:
        return RunRequest(
            Action.TEARDOWN,
            "development",
            self.platform,
            parse_scope(scope),
            volume_policy=VolumePolicy(policy),
            delete_foreign=frozenset(foreign),
        )

    async def foretold(self, policy: str = "retain", foreign: tuple[str, ...] = (), scope: str = "platform") -> Report:
        request = self.request(scope, policy, foreign)
        return (await plan_operation.plan(self.access().cluster, request)).report

    def writes(self) -> list[JournalEntry]:
        """Of ours."""
        return [entry for entry in self.world.sandbox.server.journal.writes() if entry.agent == USER_AGENT]

    def deleted(self, kind: str = APPS) -> list[str]:
        """By us, in order."""
        return [entry.name for entry in self.writes() if (entry.verb, entry.kind) == ("delete", kind)]

    async def find(self, kind: str, name: str, namespace: str = "") -> Body | None:
        return await self.world.sandbox.client().find(kind, name, namespace)

    async def names(self, kind: str) -> list[str]:
        return sorted(row["metadata"]["name"] for row in await self.world.sandbox.client().list(kind))


def stand(world: World, text: str, **objects: list[Body]) -> Stand:
    return Stand(world, platform(text), objects)


def pod_of(name: str) -> list[Body]:
    return [config(name), workload(name=name)]


@dataclass(slots=True)
class Witness:
    """The cluster's own truth: after how many requests each Application was gone."""

    stand: Stand
    gone: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        server = self.stand.world.sandbox.server

        def notice(change: StoreChange) -> None:
            if change.type == "DELETED":
                self.gone[change.new.name] = len(server.journal.entries)

        server.store.listen(APPS, "", notice)

    def deleted_too_early(self) -> list[str]:
        """Applications whose deletion we asked for while something that depends on them was still there."""
        dependents = self.stand.platform.graph.reversed()
        early, names = [], self.stand.platform.graph.names
        for number, entry in enumerate(self.stand.world.sandbox.server.journal.entries):
            if (entry.agent, entry.verb, entry.kind) == (USER_AGENT, "delete", APPS) and entry.name in names:
                above = dependents.closure([entry.name]) - {entry.name}
                early += [f"{entry.name} before {name}" for name in above if self.gone.get(name, 10**9) > number]
        return early
