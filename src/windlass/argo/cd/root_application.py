"""The root Application: it defines all others, and only a deploy ever moves it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.argo.cd.applications import APPLICATIONS
from windlass.core.platform.model.snapshots import COMMIT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.argo.cd.applications import Application
    from windlass.kube.client.objects import Plain

NAME = "platform-root"
OURS = {"app.kubernetes.io/managed-by": "windlass"}
REVISION = "$ARGOCD_APP_REVISION"
"""What Argo CD puts the commit in for: each child is pinned to the commit that its definition came from."""


@dataclass(frozen=True, slots=True)
class Root:
    """A Helm chart in a repository, whose templates are the Applications of the platform."""

    repository: str
    revision: str
    path: str
    parameters: Mapping[str, str]

    def __str__(self) -> str:
        values = ", ".join(f"{name}={value}" for name, value in sorted(self.parameters.items()))
        return f"{self.path} of {self.repository} at {self.revision} with {values or 'nothing'}"

    @property
    def is_pinned(self) -> bool:
        """To a commit; anything else may lead elsewhere tomorrow."""
        return COMMIT.fullmatch(self.revision) is not None


def rendered(root: Root, namespace: str) -> Plain:
    """Never automated, and without a finalizer: removing it removes nothing else."""
    values = {**root.parameters, "targetRevision": REVISION}
    parameters = [{"name": name, "value": value} for name, value in sorted(values.items())]
    source = {
        "repoURL": root.repository,
        "path": root.path,
        "targetRevision": root.revision,
        "helm": {"parameters": parameters},
    }
    return {
        "apiVersion": APPLICATIONS.api_version,
        "kind": APPLICATIONS.kind,
        "metadata": {"name": NAME, "namespace": namespace, "labels": OURS},
        "spec": {
            "project": "default",
            "source": source,
            "destination": {"server": "https://kubernetes.default.svc", "namespace": namespace},
        },
    }


def is_ours(live: Application) -> bool:
    return all(live.metadata.labels.get(name) == value for name, value in OURS.items())


def change(root: Root, namespace: str, live: Application | None, *, is_needed: bool) -> tuple[Plain, str]:
    """The root as it shall be, and what is to be done about it: nothing if that is empty.

    Ours follows what is wanted; somebody else's is left alone; a new one is made only if it is needed.
    """
    wanted = rendered(root, namespace)
    if (live is None and not is_needed) or (live is not None and not is_ours(live)):
        return wanted, ""
    why = _difference(live, wanted)
    return wanted, f"{NAME}, which defines the Applications, is written first: {why}" if why else ""


def _difference(live: Application | None, wanted: Plain) -> str:
    """Empty if it is as wanted."""
    if live is None:
        return "it does not exist"
    old, new = (live.spec.source if live.spec else None) or {}, wanted["spec"]["source"]
    changed = [name for name in new if old.get(name) != new[name]]
    if "targetRevision" in changed:
        return f"it follows {old.get('targetRevision')}, wanted is {new['targetRevision']}"
    return f"its {', '.join(changed)} differs" if changed else ""
