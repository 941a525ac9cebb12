"""Resources and references to their collections, objects and subresources, with their URL paths."""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import quote, urlencode

from windlass.errors import InvalidInput
from windlass.printable_text import shortened

Query = tuple[tuple[str, str], ...]
MAX_SEGMENT_LENGTH = 253  # characters; the longest name that Kubernetes allows


def is_path_segment(text: str) -> bool:
    """Whether the text may be the name of an object, kind, group or namespace: it cannot lead to another path."""
    is_short = len(text) <= MAX_SEGMENT_LENGTH and text.isprintable()
    return is_short and text not in {"", ".", ".."} and "/" not in text and "%" not in text


def are_path_segments(*parts: str | None) -> bool:
    """Whether each part that is there may be part of an address."""
    return all(map(is_path_segment, filter(None, parts)))


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource type of the API server, such as `applications` in argoproj.io/v1alpha1."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    verbs: frozenset[str] = frozenset()
    """From discovery; empty for a resource defined in code."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def everywhere(self) -> Ref:
        """The collection across all namespaces, or of a cluster-scoped resource."""
        return Ref(self)

    def in_namespace(self, namespace: str) -> Ref:
        """The collection in one namespace."""
        return Ref(self, namespace=namespace)

    def named(self, name: str, namespace: str = "") -> Ref:
        """One object."""
        return Ref(self, namespace=namespace, name=name)

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference to a collection, an object or a subresource. Raises `InvalidInput` if it is not valid."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    def __post_init__(self) -> None:
        if self.namespace and not self.resource.namespaced:
            raise InvalidInput(f"{self.resource} has no namespaces", where=f"{self.namespace}/{self.name}")
        if self.name and self.resource.namespaced and not self.namespace:
            raise InvalidInput(f"{self.resource} {self.name!r} needs a namespace")
        for part in (self.namespace, self.name, self.subresource):
            if part and not is_path_segment(part):
                shown = shortened(part, MAX_SEGMENT_LENGTH)
                raise InvalidInput(f"{shown!r} cannot be part of an address", where=str(self.resource))

    def with_subresource(self, subresource: str) -> Ref:
        return replace(self, subresource=subresource)

    @property
    def kind(self) -> str:
        """The label under which calls are counted: `applications.argoproj.io`, `pods/log`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else str(self.resource)

    @property
    def path(self) -> str:
        resource = self.resource
        parts = ["", "apis", resource.group, resource.version] if resource.group else ["", "api", resource.version]
        if self.namespace:
            parts += ["namespaces", quote(self.namespace, safe="")]
        parts.append(resource.plural)
        if self.name:
            parts.append(quote(self.name, safe=""))
        if self.subresource:
            parts.append(self.subresource)
        return "/".join(parts)

    def target(self, query: Query = ()) -> str:
        """Path and encoded query; parameters with an empty value are left out."""
        parameters = [(name, value) for name, value in query if value]
        return f"{self.path}?{urlencode(parameters)}" if parameters else self.path

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.namespace and self.name else self.name or self.namespace
        return f"{self.kind} {name}".rstrip()


CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
PODS = Resource("", "v1", "pods", "Pod")
SERVICES = Resource("", "v1", "services", "Service")
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
