"""Permission checks by SelfSubjectAccessReview, made before a run changes anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.errors import WindlassError
from windlass.kube.client.resources import Resource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windlass.kube.client.readers import KubeReader

REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)


class Unpermitted(WindlassError):
    """Lists every missing permission at once."""

    trouble = "CredentialsInvalid"


@dataclass(frozen=True, slots=True)
class Right:
    verb: str
    resource: Resource
    namespace: str = ""
    """Empty means all namespaces."""

    def __str__(self) -> str:
        place = f"in {self.namespace}" if self.namespace else "in the whole cluster"
        return f"{self.verb} {self.resource} {place}"


async def check(reader: KubeReader, rights: Iterable[Right]) -> None:
    """Raise `MissingPermissions` unless the API server allows all of them."""
    missing = [str(right) for right in rights if not await _has(reader, right)]
    if missing:
        hint = "grant them to these credentials, or use others; nothing was changed"
        raise Unpermitted(f"rights are missing: {', '.join(missing)}", where=reader.server, hint=hint)


async def _has(reader: KubeReader, right: Right) -> bool:
    attributes = {
        "verb": right.verb,
        "group": right.resource.group,
        "resource": right.resource.plural,
        "namespace": right.namespace,
    }
    answer = await reader.review(REVIEWS, {"resourceAttributes": attributes})
    return bool((answer.get("status") or {}).get("allowed"))
