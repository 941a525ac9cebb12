"""Events as they came, made the same for every run: only the fields that matter, and nothing of the machine. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from windlass.kube.client.objects import RawObject

KEPT_METADATA = ("name", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers")
KEPT_ANNOTATIONS = ("argocd.argoproj.io/refresh", "deployment.kubernetes.io/revision")
KEPT_SPEC: dict[str, tuple[str, ...]] = {
    "Deployment": ("replicas", "paused"),
    "ReplicaSet": ("replicas",),
    "StatefulSet": ("replicas",),
    "Job": ("backoffLimit", "completions", "parallelism", "activeDeadlineSeconds", "suspend"),
    "PersistentVolumeClaim": ("volumeName",),
    "PersistentVolume": ("claimRef",),
    "Application": ("syncPolicy",),
}  # fmt: skip
DROPPED_STATUS = {"qosClass", "hostIP", "hostIPs", "podIP", "podIPs", "nominatedNodeName", "resourceHealthSource"}
DROPPED_FIELDS = {
    *("resourceVersion", "managedFields", "lastProbeTime", "containerID"),
    *("imageID", "image", "volumeMounts", "resources"),
}
KEEPS_RESOURCES = "Application"
"""A kind whose `resources` are no limits of a container but what we look at."""

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
REVISION = re.compile(r"\b[0-9a-f]{40}\b")
ADDRESS = re.compile(r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?::\d+)?\b")
DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
REPOSITORY = re.compile(r"https?://[^/\s\"]+/([a-z0-9-]+)\.git")
GENERATED = re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{5}")
HASH_LABELS = ("pod-template-hash", "controller-revision-hash")


def reduced(item: RawObject) -> RawObject:
    """The part of an object that tells what its controller did."""
    kind = item["kind"]
    meta = item["metadata"]
    found: RawObject = {name: meta[name] for name in KEPT_METADATA if name in meta}
    if annotations := {k: v for k, v in meta.get("annotations", {}).items() if k in KEPT_ANNOTATIONS}:
        found["annotations"] = annotations
    if owners := [f"{owner['kind']}/{owner['name']}" for owner in meta.get("ownerReferences", [])]:
        found["owners"] = owners
    result: RawObject = {"metadata": found}
    if spec := {name: item["spec"][name] for name in KEPT_SPEC.get(kind, ()) if name in item.get("spec", {})}:
        result["spec"] = _without(spec, kind)
    if "operation" in item:
        result["operation"] = _without(item["operation"], kind)
    if "status" in item:
        status = {name: value for name, value in item["status"].items() if name not in DROPPED_STATUS}
        result["status"] = _without(status, kind)
    return result


def _without(value: Any, kind: str) -> Any:
    dropped = DROPPED_FIELDS - {"resources"} if kind == KEEPS_RESOURCES else DROPPED_FIELDS
    if isinstance(value, dict):
        return {name: _without(part, kind) for name, part in value.items() if name not in dropped}
    return [_without(part, kind) for part in value] if isinstance(value, list) else value


class Marks:
    """Stable words for what differs from run to run. All objects are shown to it first, then texts are rewritten."""

    def __init__(self) -> None:
        self._times: set[str] = set()
        self._words: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def see(self, item: RawObject) -> None:
        meta = item["metadata"]
        for label in HASH_LABELS:
            if value := meta.get("labels", {}).get(label):
                self._word(value.removeprefix(f"{meta.get('generateName', '')}"), "hash")
        suffix = meta["name"].removeprefix(meta.get("generateName", ""))
        if GENERATED.fullmatch(suffix):
            self._word(suffix, "suffix")
        for text in _texts(item):
            self._times.update(TIME.findall(text))

    def rewritten(self, value: Any) -> Any:
        """The same value with marks for times, uids, revisions, hashes and addresses."""
        ranks = {time: f"t{rank}" for rank, time in enumerate(sorted(self._times))}
        return _mapped(value, lambda text: self._rewrite(text, ranks))

    def _rewrite(self, text: str, ranks: dict[str, str]) -> str:
        text = TIME.sub(lambda found: ranks.get(found[0], "t"), text)
        text = REPOSITORY.sub(r"https://git.invalid/\1.git", text)
        text = UID.sub(lambda found: self._word(found[0], "uid"), text)
        text = DIGEST.sub("digest", text)
        text = REVISION.sub(lambda found: self._word(found[0], "revision"), text)
        text = ADDRESS.sub("address", text)
        for word, mark in self._words.items():
            if word in text:
                text = re.sub(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", mark, text)
        return text

    def _word(self, word: str, kind: str) -> str:
        if word not in self._words:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._words[word] = f"{kind}{self._counts[kind]}"
        return self._words[word]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(name): _mapped(part, change) for name, part in value.items()}
    return [_mapped(part, change) for part in value] if isinstance(value, list) else value
