"""The schema of `environment.yaml`: the target of a platform and the git repository it comes from.

Docstrings of the models are descriptions in docs/schemas/environment.json.
"""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import unquote

from pydantic import AfterValidator

from windlass.settings.file_fields import Duration, FileModel, Name, RetriesEntry, Text

DEFAULT_ARGOCD_NAMESPACE = "argocd"
_REPOSITORY = re.compile(r"[^\s/:]+:\S+|/.*")  # a URL, user@host:path or an absolute path
_DOMAIN = re.compile(r"[a-zA-Z0-9][-a-zA-Z0-9.]{0,251}[a-zA-Z0-9]")
_SECRET_PARAMETER = re.compile("token|passw|pwd|secret|key|auth|cred|sig", re.IGNORECASE)


def _reject_credentials(address: str) -> str:
    url = address.strip()  # git ignores surrounding space
    if _has_userinfo(url) or any(_SECRET_PARAMETER.search(name) for name in _parameter_names(url)):
        raise ValueError("must not contain credentials: mount them as /secrets/git-username and /secrets/git-password")
    if not _REPOSITORY.fullmatch(url):
        raise ValueError("must be the address of a git repository: https://host/path, git@host:path or /path")
    return address


def _require_relative_path(path: str) -> str:
    if path.startswith("/") or ".." in path.split("/"):
        raise ValueError("must be a path inside the repository: relative, and without ..")
    return path


def _require_domain(domain: str) -> str:
    if not _DOMAIN.fullmatch(domain):
        raise ValueError("must be a domain name such as eu.example.org")
    return domain


def _has_userinfo(url: str) -> bool:
    """Whether there is a password before the host or, for HTTP, a token alone; `ssh://git@` and `git@` are allowed."""
    scheme, separator, rest = url.partition("://")
    authority = re.split("[/?#]", rest if separator else url, maxsplit=1)[0]
    userinfo, at_sign, _ = authority.partition("@")
    return bool(at_sign) and (":" in userinfo or scheme.lower() in {"http", "https"})


def _parameter_names(url: str) -> list[str]:
    """The names in the query and the fragment, decoded."""
    _, *parameters = re.split("[?#&;]", url)
    return [unquote(parameter.partition("=")[0]) for parameter in parameters]


class TimeoutsEntry(FileModel):
    sync: Duration | None = None
    """Timeout of the sync of one application."""
    health: Duration | None = None
    """Timeout for one application to become healthy after its sync."""
    overall: Duration | None = None
    """Time limit of a whole run."""


class EnvironmentFile(FileModel):
    """The settings of one environment."""

    name: Name
    """Name: `production`, or with a suffix: `production-eu`."""
    domain: Annotated[Text, AfterValidator(_require_domain)]
    """Base domain of the environment."""
    git_repository: Annotated[Text, AfterValidator(_reject_credentials)]
    """URL of the repository with the root chart."""
    git_revision: Text
    """Branch, tag or commit to deploy."""
    git_path: Annotated[Text, AfterValidator(_require_relative_path)] | None = None
    """Folder of the root chart in the repository."""
    cluster_name: Text | None = None
    argocd_namespace: Name = DEFAULT_ARGOCD_NAMESPACE
    workflows_namespace: Name = "argo"
    timeouts: TimeoutsEntry = TimeoutsEntry()
    retries: RetriesEntry = RetriesEntry()
