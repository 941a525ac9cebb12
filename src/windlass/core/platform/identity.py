"""The environment and platform that a cluster belongs to, as the first deploy records them on the Lease of runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.printable_text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

ENVIRONMENT_ANNOTATION = "windlass.dev/environment"
PLATFORM_ANNOTATION = "windlass.dev/platform"
EMBEDDED_PLATFORM = "embedded reference platform"
"""Stands for the platform file of a run without one."""
MAX_SHOWN_NAME = 100  # characters of a recorded name: another client may have written anything


@dataclass(frozen=True, slots=True)
class ClusterIdentity:
    """Names of the environment and of the platform; in a record either may be empty, which matches every name."""

    environment: str
    platform: str

    def __str__(self) -> str:
        return f"environment {_shown(self.environment)}, platform {_shown(self.platform)}"

    @property
    def annotations(self) -> dict[str, str]:
        return {ENVIRONMENT_ANNOTATION: self.environment, PLATFORM_ANNOTATION: self.platform}


def recorded_identity(annotations: Mapping[str, object]) -> ClusterIdentity | None:
    """The identity in the annotations of the Lease; `None` if they record none."""
    environment, platform = (str(annotations.get(name) or "") for name in (ENVIRONMENT_ANNOTATION, PLATFORM_ANNOTATION))
    return ClusterIdentity(environment, platform) if environment or platform else None


def identity_mismatch(recorded: ClusterIdentity | None, requested: ClusterIdentity) -> str:
    """How the cluster's record differs from what was requested; empty if it does not, or if nothing is recorded."""
    if recorded is None:
        return ""
    is_same_environment = recorded.environment in {"", requested.environment}
    if is_same_environment and recorded.platform in {"", requested.platform}:
        return ""
    return f"this cluster is recorded as {recorded}; the request is for {requested}"


def _shown(name: str) -> str:
    return one_line(name[:MAX_SHOWN_NAME]) or "(none)"
