"""The fields in which two versions of an object differ, and the effect of a changed manifest on the live object. Pure.

Items of a list are matched by a field that identifies them, such as the name of a container; if there is none, by their
position.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

IDENTIFYING_FIELDS = ("containerPort", "port", "mountPath", "name", "ip", "key", "type")
"""In this order, because Kubernetes merges ports by their number and not by their name."""
MAX_DEPTH = 64  # levels that are compared field by field; what is deeper is compared as one value
HIDDEN = "(hidden)"
_SECRET_WORDS = re.compile(r"passw|secret|token|credential|private_?key|api_?key", re.IGNORECASE)
_REFERENCES = frozenset({"name", "namespace", "key", "kind", "optional", "secretname"})
"""Last parts of a path that name a secret and do not contain one."""


class _Absent:
    """The value of a field that does not exist; null is a value."""


ABSENT = _Absent()
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field whose value changes. `before` is `None` if it is added, `after` is `None` if it is removed."""

    path: str
    before: str | None = None
    after: str | None = None


def changed_fields(
    before: Any, after: Any, raw: Any, shorten: Callable[[str], str], *, hides_values: bool = False
) -> Iterator[FieldChange]:
    """The differences between two objects.

    `raw`: the live object before Argo CD normalized it to `before`. A field that only `raw` has is one that Argo CD was
    told to ignore. `shorten`: removes secrets from a text and limits its length. `hides_values`: show no value at all,
    as for a Secret.
    """
    for path, old, new in _differences((), before, after, raw):
        is_hidden = hides_values or _may_be_secret(path)
        line, *values = _changed_lines(old, new)
        shown = [None if each is ABSENT else HIDDEN if is_hidden else shorten(_text(each)) for each in values]
        yield FieldChange(shorten(_join(path)) + line, *shown)


def with_manifest_change(live: Any, before: Any, after: Any, depth: int = 0) -> Any:
    """The live value after a sync whose manifest has changed from `before` to `after`.

    Fields that the manifests have in common, or that only the live object has, stay as they are.
    """
    if before == after:
        return live
    if depth > MAX_DEPTH or live is ABSENT or before is ABSENT:
        return with_fields(live, after, depth)
    views = _mappings(live, before, after)
    if views is None:
        return after
    (old_live, old, new), rebuild = views
    merged = dict(old_live)
    for name in old.keys() - new.keys():
        merged.pop(name, None)
    for name, value in new.items():
        if name not in old or old[name] != value:
            merged[name] = with_manifest_change(old_live.get(name, ABSENT), old.get(name, ABSENT), value, depth + 1)
    return rebuild(merged)


def with_fields(live: Any, manifest: Any, depth: int = 0) -> Any:
    """The live value with every field of a manifest; fields that only the live object has stay."""
    views = None if live is ABSENT or depth > MAX_DEPTH else _mappings(live, manifest)
    if views is None:
        return manifest
    (old_live, new), rebuild = views
    return rebuild({**old_live, **{k: with_fields(old_live.get(k, ABSENT), v, depth + 1) for k, v in new.items()}})


def _differences(path: Path, before: Any, after: Any, raw: Any) -> Iterator[tuple[Path, Any, Any]]:
    if before == after or (before is ABSENT and raw is not ABSENT):
        return
    views = _mappings(before, after) if len(path) <= MAX_DEPTH else None
    if views is None:
        yield path, before, after
        return
    (old, new), _ = views
    raw_views = _mappings(before, after, raw)
    raws = raw_views[0][2] if raw_views else {}
    names = dict.fromkeys((*old, *new))
    for name in sorted(names) if isinstance(before, dict) else names:
        yield from _differences((*path, name), old.get(name, ABSENT), new.get(name, ABSENT), raws.get(name, ABSENT))


def _mappings(*values: Any) -> tuple[list[dict[str, Any]], Any] | None:
    """The values as mappings with common keys, and what turns such a mapping into a value again.

    `None` if they have to be compared as a whole: one is neither a mapping nor a list of mappings, or items of lists
    without an identifying field are added or removed.
    """
    if all(isinstance(value, dict) for value in values):
        return list(values), dict
    if not all(isinstance(value, list) and all(isinstance(item, dict) for item in value) for value in values):
        return None
    for field in IDENTIFYING_FIELDS:
        if all(_identifies(field, value) for value in values):
            return [{f"[{item[field]}]": item for item in value} for value in values], lambda found: [*found.values()]
    if len({len(value) for value in values}) > 1:
        return None
    return [{f"[{i}]": item for i, item in enumerate(value)} for value in values], lambda found: [*found.values()]


def _identifies(field: str, items: list[dict[str, Any]]) -> bool:
    values = [item.get(field) for item in items]
    return all(isinstance(value, str | int) for value in values) and len({str(value) for value in values}) == len(items)


def _may_be_secret(path: Path) -> bool:
    return path[-1:] != () and path[-1].lower() not in _REFERENCES and any(map(_SECRET_WORDS.search, path))


def _changed_lines(before: Any, after: Any) -> tuple[str, Any, Any]:
    """Where texts of several lines differ, and both without the lines that they begin and end with; others as given."""
    if not isinstance(before, str) or not isinstance(after, str) or "\n" not in before + after:
        return "", before, after
    old, new = before.splitlines(), after.splitlines()
    start = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    first, second = ("\n".join(lines[start : len(lines) - end]) for lines in (old, new))
    return f" (line {start + 1})", first, second


def _join(path: Path) -> str:
    """`spec.containers[web].image`; a key with a dot stands in brackets too, as in `metadata.labels[a.b/c]`."""
    text = ""
    for part in path:
        if part.startswith("[") and part.endswith("]"):
            text += part
        elif "." in part or "/" in part:
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
