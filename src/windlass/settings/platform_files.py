"""The schema of `dag.yaml`: the stacks and applications of a platform, their dependencies and their timeouts.

Names of the models and their docstrings are part of docs/schemas/platform.json.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from windlass.settings.file_fields import Duration, FileModel, Name, RetriesEntry, Text

ApplicationName = Annotated[
    str, StringConstraints(pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
]


class Metadata(FileModel):
    name: Name


class Profile(FileModel):
    """Timeouts of a kind of application. Defaults: the environment file, then the embedded profile."""

    sync: Duration | None = None
    """Timeout of a sync."""
    health: Duration | None = None
    """Timeout to become healthy after the sync."""
    stability: Duration | None = None
    """How long the application must stay healthy before its gate opens."""
    degraded_grace: Duration | None = None
    """How long the application may be Degraded before it fails."""
    expected: Duration | None = None
    """Usual duration; used for estimates and to start long chains first."""


class NodeTimeouts(FileModel):
    sync: Duration | None = None
    health: Duration | None = None


class ResourceEntry(FileModel):
    """A Kubernetes object."""

    api_version: Text
    kind: Text
    name: Text
    namespace: Name | None = None


class ApplicationEntry(FileModel):
    """A node: an Argo CD Application, or a Kubernetes object that other nodes depend on."""

    name: Name
    depends_on: list[Name] | None = None
    """Nodes that must be healthy before this one starts."""
    profile: Name | None = None
    critical: bool | None = None
    """If this node is not healthy, the platform counts as failed, not as degraded."""
    application: ApplicationName | None = None
    """The Argo CD Application, `[namespace/]name`, if its name differs from that of the node."""
    resource: ResourceEntry | None = None
    """A Kubernetes object that must be healthy, instead of an Application."""
    timeouts: NodeTimeouts = NodeTimeouts()
    retries: RetriesEntry = RetriesEntry()

    @model_validator(mode="after")
    def _check_single_target(self) -> Self:
        if self.application and self.resource:
            raise ValueError("must be an application or a resource, not both")
        return self


class StackEntry(FileModel):
    """A group of applications."""

    name: Name
    depends_on: list[Name] | None = None
    """Stacks. Every application of this stack depends on every application of those stacks."""
    applications: list[ApplicationEntry] | None = None


class Only(FileModel):
    """A part of the platform. The rest is never changed; its nodes are checked if this part depends on them."""

    stacks: list[Name] | None = None
    applications: list[Name] | None = None


class Execution(FileModel):
    max_parallel: Annotated[int, Field(ge=1, le=1000)] = 10
    """Maximum number of applications in progress at the same time."""
    barrier: Literal["none", "wave"] = "none"
    """`none`: a node starts when its dependencies are healthy. `wave`: a wave starts after the previous one."""


class Spec(FileModel):
    extends: Literal["reference"] | None = None
    """Start from the embedded reference platform. Entries of this file are added, or override fields there."""
    only: Only | None = None
    execution: Execution = Execution()
    profiles: dict[Name, Profile] = Field(default_factory=dict)
    stacks: list[StackEntry] = Field(default_factory=list)


class PlatformFile(FileModel):
    """A platform: its applications and their dependencies."""

    api_version: Literal["windlass.dev/v1alpha1"]
    kind: Literal["Platform"]
    metadata: Metadata
    spec: Spec
