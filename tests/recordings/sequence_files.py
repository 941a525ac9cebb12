"""A recording: what was done, and what was seen after it; and its file, one step per line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.kube.client.objects import RawObject

SEQUENCES = Path(__file__).parent / "sequences"


@dataclass(frozen=True, slots=True)
class Done:
    """What the recorder asked of the cluster."""

    what: str


@dataclass(frozen=True, slots=True)
class Seen:
    """One watch event: an object as a controller, or the recorder, left it."""

    type: str
    kind: str
    name: str
    item: RawObject

    def at(self, *path: str | int) -> Any:
        """A field of the object, or None."""
        found: Any = self.item
        for part in path:
            try:
                found = found[part]
            except (KeyError, IndexError, TypeError):
                return None
        return found


@dataclass(frozen=True, slots=True)
class Recording:
    name: str
    about: str
    versions: dict[str, str]
    steps: tuple[Done | Seen, ...]

    def of(self, kind: str, name: str = "") -> list[Seen]:
        """All that was seen of a kind, or of one object."""
        seen = (step for step in self.steps if isinstance(step, Seen))
        return [step for step in seen if step.kind == kind and name in {"", step.name}]

    @property
    def actions(self) -> list[str]:
        return [step.what for step in self.steps if isinstance(step, Done)]


def load(name: str) -> Recording:
    found = json.loads((SEQUENCES / f"{name}.json").read_text())
    steps = tuple(_parse(step) for step in found["steps"])
    return Recording(name, found["about"], found["versions"], steps)


def names() -> list[str]:
    return sorted(path.stem for path in SEQUENCES.glob("*.json"))


def write(recording: Recording) -> Path:
    path = SEQUENCES / f"{recording.name}.json"
    path.write_text("\n".join(_lines(recording)) + "\n")
    return path


def _lines(recording: Recording) -> Iterator[str]:
    yield f'{{"about": {json.dumps(recording.about)},'
    yield f' "versions": {json.dumps(recording.versions)},'
    yield ' "steps": ['
    last = len(recording.steps) - 1
    for index, step in enumerate(recording.steps):
        yield f"  {json.dumps(_rendered(step))}{'' if index == last else ','}"
    yield "]}"


def _parse(step: RawObject) -> Done | Seen:
    if "do" in step:
        return Done(step["do"])
    return Seen(step["event"], step["kind"], step["object"]["metadata"]["name"], step["object"])


def _rendered(step: Done | Seen) -> RawObject:
    if isinstance(step, Done):
        return {"do": step.what}
    return {"event": step.type, "kind": step.kind, "object": step.item}
