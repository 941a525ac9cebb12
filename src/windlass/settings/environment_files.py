"""The schema of `environment.yaml`: the target of a platform and the git repository it comes from.

Docstrings of the models are descriptions in docs/schemas/environment.json.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from windlass.settings.file_fields import Duration, FileModel, Name, RetriesEntry, Text

DEFAULT_ARGOCD_NAMESPACE = "argocd"
_CREDENTIALS = re.compile(r"^(https?://[^/@]*@|[a-z0-9+.-]+://[^/@]*:[^/@]*@)", re.IGNORECASE)
"""Credentials in a URL, before the host: a password, or for HTTP also a token alone. `ssh://git@` is allowed."""


def _reject_credentials(address: str) -> str:
    if _CREDENTIALS.match(address):
        raise ValueError("must not hold credentials: mount them as /secrets/git-username and /secrets/git-password")
    return address


class TimeoutsEntry(FileModel):
    sync: Duration | None = None
    """How long the sync of one application may take."""
    health: Duration | None = None
    """How long one application may take to become healthy after its sync."""
    overall: Duration | None = None
    """How long a whole run may take."""


class EnvironmentFile(FileModel):
    """What is particular to one environment."""

    name: Name
    """`production`, or one of several: `production-eu`."""
    domain: Text
    """Base domain of its ingresses."""
    git_repository: Annotated[Text, AfterValidator(_reject_credentials)]
    """Address of the repository with the platform's manifests."""
    git_revision: Text
    """Branch, tag or commit."""
    git_path: Text | None = None
    """Folder of the root in that repository."""
    cluster_name: Text | None = None
    argocd_namespace: Name = DEFAULT_ARGOCD_NAMESPACE
    workflows_namespace: Name = "argo"
    timeouts: TimeoutsEntry = TimeoutsEntry()
    retries: RetriesEntry = RetriesEntry()
