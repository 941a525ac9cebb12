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
    """A kind of application. What is not given comes from the environment file, then from the embedded profile."""

    sync: Duration | None = None
    """How long a sync may take."""
    health: Duration | None = None
    """How long it may take to become healthy after that."""
    stability: Duration | None = None
    """How long it must have been healthy."""
    degraded_grace: Duration | None = None
    """How long it may be Degraded before that is a failure."""
    expected: Duration | None = None
    """What it usually takes: for estimates, and for who starts first."""


class NodeTimeouts(FileModel):
    sync: Duration | None = None
    health: Duration | None = None


class ResourceEntry(FileModel):
    """Any object of the cluster."""

    api_version: Text
    kind: Text
    name: Text
    namespace: Name | None = None


class ApplicationEntry(FileModel):
    """One node: an Argo CD Application, or an object whose health is a gate of its own."""

    name: Name
    depends_on: list[Name] | None = None
    """What must be healthy before this starts."""
    profile: Name | None = None
    critical: bool | None = None
    """The platform counts as failed, not degraded, when this is not healthy."""
    application: ApplicationName | None = None
    """The Argo CD Application, `[namespace/]name`, if it is not called like the node."""
    resource: ResourceEntry | None = None
    """Instead of an Application: wait for this object to be healthy."""
    timeouts: NodeTimeouts = NodeTimeouts()
    retries: RetriesEntry = RetriesEntry()

    @model_validator(mode="after")
    def _check_single_target(self) -> Self:
        if self.application and self.resource:
            raise ValueError("must be an application or a resource, not both")
        return self


class StackEntry(FileModel):
    """Applications that belong together."""

    name: Name
    depends_on: list[Name] | None = None
    """Stacks: every application of this one waits for every application of those."""
    applications: list[ApplicationEntry] | None = None


class Only(FileModel):
    """A part of the platform: the rest is known, is checked where this part needs it, and is never changed."""

    stacks: list[Name] | None = None
    applications: list[Name] | None = None


class Execution(FileModel):
    max_parallel: Annotated[int, Field(ge=1, le=1000)] = 10
    """How many applications may be under way at a time."""
    barrier: Literal["none", "wave"] = "none"
    """`none`: each starts when what it waits for is healthy. `wave`: each wave waits for the whole one before."""


class Spec(FileModel):
    extends: Literal["reference"] | None = None
    """Start from the embedded reference platform; what stands here is added, or replaces what is given there."""
    only: Only | None = None
    execution: Execution = Execution()
    profiles: dict[Name, Profile] = Field(default_factory=dict)
    stacks: list[StackEntry] = Field(default_factory=list)


class PlatformFile(FileModel):
    """A platform: what it consists of, and in which order it stands up."""

    api_version: Literal["windlass.dev/v1alpha1"]
    kind: Literal["Platform"]
    metadata: Metadata
    spec: Spec
