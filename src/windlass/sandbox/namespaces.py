"""What a terminating namespace says about what is still in it. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windlass.sandbox.statuses import Body
    from windlass.sandbox.stores import Stored

DONE = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    ("NamespaceDeletionContentFailure", "ContentDeleted", "All content deleted, may be waiting on finalization"),
)  # fmt: skip


def conditions(left: list[Stored], now: str) -> list[Body]:
    kinds = Counter(item.kind_id for item in left)
    finalizers = Counter(name for item in left for name in item.body["metadata"].get("finalizers") or ())
    remaining = ", ".join(f"{kind}. has {count} resource instances" for kind, count in sorted(kinds.items()))
    holding = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
    content = f"Some resources are remaining: {remaining}" if left else "All content successfully removed"
    held = f"Some content in the namespace has finalizers remaining: {holding}"
    rows = [(kind, "False", reason, message) for kind, reason, message in DONE]
    rows += [
        ("NamespaceContentRemaining", str(bool(left)), "SomeResourcesRemain" if left else "ContentRemoved", content),
        (
            "NamespaceFinalizersRemaining",
            str(bool(holding)),
            "SomeFinalizersRemain" if holding else "ContentHasNoFinalizers",
            held if holding else "All content-preserving finalizers finished",
        ),
    ]
    return [
        {"type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message}
        for kind, status, reason, message in rows
    ]
