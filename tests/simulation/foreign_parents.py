"""Parents of other clients: Applications and ApplicationSets that define the applications of a platform."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tests.sandbox.controllers.objects import CASCADE, URL
from tests.simulation.scenarios import APPLICATIONS, ARGOCD
from windlass.sandbox.apiserver.wire.api_status import StatusError

if TYPE_CHECKING:
    from tests.simulation.scenarios import Scenario
    from windlass.sandbox.in_process_client import InProcessClient

Body = dict[str, Any]
FOREIGN_PARENTS = ("apps", "outer")
"""Their names.

The kinds, as in `Scenario.parent`: `application`, which a run must sync; `automated`, which syncs itself; `nested`: one
that a run must sync, defined by one that syncs itself; `node`, a node of the platform; `set`, an ApplicationSet.
"""
SETS = "applicationsets.argoproj.io"
OWN_REVISION = "$ARGOCD_APP_REVISION"
SERVER = "https://kubernetes.default.svc"


async def create_parents(client: InProcessClient, scenario: Scenario) -> None:
    """Create those that do not exist: a teardown may have kept them."""
    bodies = [_parent("apps", "root", is_automated=scenario.parent == "automated")]
    if scenario.parent == "nested":
        bodies.append(_parent("outer", "outer", is_automated=True))
    if scenario.parent == "set":
        bodies = [_application_set(scenario)]
    for body in bodies:
        with suppress(StatusError):
            await client.create(SETS if body["kind"] == "ApplicationSet" else APPLICATIONS, body)


def nested_files() -> Body:
    """The chart of the outer parent: it defines the inner one, whose parameters move with each commit."""
    inner = _parent("apps", "root", "{{ .Values.targetRevision }}")
    return {"outer/Chart.yaml": "name: outer\nversion: 1.0.0\n", "outer/templates/apps.yaml": inner}


def _parent(name: str, path: str, revision: str = OWN_REVISION, *, is_automated: bool = False) -> Body:
    """`revision`: the commit to which it pins its children."""
    source: Body = {"repoURL": URL, "path": path, "targetRevision": "main"}
    source["helm"] = {"parameters": [{"name": "targetRevision", "value": revision}]}
    policy = {"syncPolicy": {"automated": {"selfHeal": True}}} if is_automated else {}
    destination = {"server": SERVER, "namespace": ARGOCD}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": ARGOCD},
        "spec": {"project": "default", "source": source, "destination": destination, **policy},
    }


def _application_set(scenario: Scenario) -> Body:
    elements = [{"app": name} for name in scenario.commits[0]]
    source = {"repoURL": URL, "path": "{{app}}", "targetRevision": "main"}
    template = {
        "metadata": {"name": "{{app}}", "finalizers": [CASCADE]},
        "spec": {"project": "default", "source": source, "destination": {"server": SERVER, "namespace": "default"}},
    }
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ApplicationSet",
        "metadata": {"name": "apps", "namespace": ARGOCD},
        "spec": {"generators": [{"list": {"elements": elements}}], "template": template},
    }
