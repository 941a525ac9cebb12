"""The settings of one command as typed values: all that leaves this package."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from windlass.errors import InvalidInput
from windlass.kube.auth import kubeconfigs
from windlass.kube.redactions import Redactor
from windlass.settings.problems import credential_source_problems

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from windlass.core.log_lines import Level
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.scopes import Scope
    from windlass.core.platform.teardown.volumes import VolumePolicy
    from windlass.kube.auth.connections import Connection
    from windlass.settings.mounts import Mounts
    from windlass.settings.platforms import PlatformDefinition


@dataclass(frozen=True, slots=True)
class ClusterCredentials:
    """The sources of credentials that were given. There is no default location."""

    kubeconfig: str | None = None
    """Path of a kubeconfig."""
    kubeconfig_data: bytes | None = field(default=None, repr=False)
    """Content of a kubeconfig."""
    in_cluster: bool = False
    """Use the service account of the pod this runs in."""
    context: str | None = None
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    redactor: Redactor = field(default_factory=Redactor, repr=False, compare=False)
    """The redactor of the process; the connection adds its credentials to it."""

    def load_connection(self) -> Connection:
        """Read and parse the kubeconfig.

        Called when a command connects, not when its settings are loaded: a run reports a broken kubeconfig in its log,
        like any other reason why the cluster cannot be reached.
        """
        given = {
            "--kubeconfig": self.kubeconfig is not None,
            "KUBECONFIG_DATA": self.kubeconfig_data is not None,
            "--in-cluster": self.in_cluster,
        }
        require_one_source([name for name, is_given in given.items() if is_given], self.environ)
        return replace(self._parse_source(), redactor=self.redactor)

    def _parse_source(self) -> Connection:
        if self.kubeconfig_data is not None:
            return kubeconfigs.load(
                self.kubeconfig_data, where="KUBECONFIG_DATA", context=self.context, environ=self.environ
            )
        if self.kubeconfig is not None:
            return kubeconfigs.load_file(Path(self.kubeconfig), context=self.context, environ=self.environ)
        return kubeconfigs.in_cluster(self.environ)


def require_one_source(sources: Sequence[str], environ: Mapping[str, str]) -> None:
    """Raise `InvalidInput` unless exactly one source of credentials is given."""
    for problem in credential_source_problems(sources, environ):
        raise InvalidInput(problem.what, hint=problem.hint)


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """Log, trace and metrics of a run."""

    log_level: Level
    log_format: Literal["text", "json"]
    is_log_configured: bool
    """Whether an option or a variable sets the level or the format of the log."""
    trace_id: str
    """Empty if the run belongs to no trace; the same for `span_id`."""
    span_id: str
    metrics_port: int | None
    metrics_address: str
    metrics_file: Path | None
    pushgateway: str
    """URL; empty if metrics are not pushed."""


@dataclass(frozen=True, slots=True)
class TerminalSettings:
    """The environment variables that describe the terminal: its type, size and colours."""

    variables: Mapping[str, str]

    @property
    def is_dumb(self) -> bool:
        """Whether the terminal cannot move its cursor."""
        return self.variables.get("TERM", "dumb") == "dumb"


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Settings of a command that connects to a cluster, with or without a platform file."""

    credentials: ClusterCredentials
    environment: str
    """Target environment as given by option or variable; empty if it is not given."""
    timeout: timedelta
    """Time limit of the whole run."""
    lock_timeout: timedelta
    """How long to wait while another run holds the lock."""
    pipeline_url: str
    """Empty if it is not given."""
    telemetry: TelemetrySettings
    terminal: TerminalSettings
    given_options: Mapping[str, str]
    """The options of the command line, by setting name; recommended commands repeat them."""
    mounts: Mounts
    """Empty for commands that read no mounted files."""


@dataclass(frozen=True, slots=True)
class RootSource:
    """Where the manifests of the platform come from: a Helm chart in a Git repository, and its parameters."""

    repository: str
    revision: str
    path: str
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class EffectiveValue:
    """One value of the configuration, as `windlass config` shows it. Secrets are masked."""

    name: str
    value: str | int | bool | None
    origin: str
    """The option, variable or file location that it comes from, `default` or `not set`."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a command that reads a platform file."""

    cluster: ClusterSettings
    definition: PlatformDefinition
    scope: Scope
    environment_name: str
    """Name in the environment file, `production-eu`; without a file the target environment, `production`."""
    environment_path: str
    """Path of the environment file; empty without one."""
    platform_path: str
    """Path of the platform file; empty without one."""
    argocd_namespace: str
    root: RootSource | None
    """Without an environment file `None`."""
    volume_policy: VolumePolicy
    is_dry_run: bool
    effective_values: tuple[EffectiveValue, ...]

    @property
    def platform(self) -> Platform:
        return self.definition.platform

    @property
    def explicit_dependencies(self) -> frozenset[str]:
        return self.definition.explicit_dependencies
