"""The root Application, which defines all others and is only ever changed by `deploy`."""

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
"""Argo CD replaces this variable with the commit, which pins each child to the commit that defines it."""


@dataclass(frozen=True, slots=True)
class Root:
    """A Helm chart in a Git repository, whose templates are the Applications of the platform."""

    repository: str
    revision: str
    path: str
    parameters: Mapping[str, str]

    def __str__(self) -> str:
        values = ", ".join(f"{name}={value}" for name, value in sorted(self.parameters.items()))
        return f"{self.path} of {self.repository} at {self.revision} with {values or 'nothing'}"

    @property
    def is_pinned(self) -> bool:
        """Whether the revision is a commit; a branch or tag may move."""
        return COMMIT.fullmatch(self.revision) is not None


def rendered(root: Root, namespace: str) -> Plain:
    """Manifest of the root Application: no automated sync, and no finalizer, so that its deletion never cascades."""
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
    """Desired manifest of the root, and a description of the change; the description is empty if none is needed.

    A root that Windlass manages is updated, any other is left alone, and a new one is created only if `is_needed`.
    """
    wanted = rendered(root, namespace)
    if (live is None and not is_needed) or (live is not None and not is_ours(live)):
        return wanted, ""
    why = _difference(live, wanted)
    return wanted, f"{NAME}, which defines the Applications, is written first: {why}" if why else ""


def _difference(live: Application | None, wanted: Plain) -> str:
    """Empty if the live root matches the manifest."""
    if live is None:
        return "it does not exist"
    old, new = (live.spec.source if live.spec else None) or {}, wanted["spec"]["source"]
    changed = [name for name in new if old.get(name) != new[name]]
    if "targetRevision" in changed:
        return f"it follows {old.get('targetRevision')}, wanted is {new['targetRevision']}"
    return f"its {', '.join(changed)} differs" if changed else ""
