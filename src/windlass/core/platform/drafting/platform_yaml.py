"""Rendering of a draft as a platform file, with comments that give the reason for each dependency."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from windlass.core.platform.drafting.drafts import Draft, DraftStack, Edge, Entry

PROFILE = "simple"
WIDTH = 112
NO_LONGER = "its annotation adds nothing; from here on it does not count"
_BARE = re.compile(r"[a-z][a-z0-9.-]*(/[a-z0-9.-]+)?")
_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}  # YAML does not read these as strings


def platform_text(draft: Draft, heading: Iterable[str], name: str = "imported") -> str:
    lines = [f"# {_plain(line)}" for line in heading]
    lines += ["apiVersion: windlass.dev/v1alpha1", "kind: Platform", f"metadata: {{name: {_word(name)}}}", "spec:"]
    lines += ["  stacks:"]
    for stack in draft.stacks:
        lines += (f"    {line}" for line in _stack(stack))
    return "\n".join(lines) + "\n"


def _stack(stack: DraftStack) -> Iterator[str]:
    yield f"# {_plain(stack.about)}"
    yield f"- name: {_word(stack.name)}"
    if stack.needs:
        yield "  dependsOn:"
        yield from (f"    {line}" for line in _needs(stack.needs))
    yield "  applications:"
    for entry in stack.entries:
        yield from (f"    {line}" for line in _entry(entry))


def _entry(entry: Entry) -> Iterator[str]:
    """One line if it is short and has at most one reason; otherwise one line for each field and dependency."""
    fields = [f"name: {_word(entry.name)}", f"profile: {PROFILE}"]
    fields += [f"application: {_word(entry.target)}"] if entry.target else []
    yield from (f"# left out: {_plain(line)}" for line in entry.left_out)
    if entry.needs is None:
        yield f"- {{{', '.join(fields)}}}"
        return
    reasons = {reason for _, reason in entry.needs} or {NO_LONGER}
    needs = f"dependsOn: [{', '.join(_word(name) for name, _ in entry.needs)}]"
    line = f"- {{{', '.join([*fields, needs])}}}{_comment(*reasons)}"
    if len(reasons) == 1 and (len(line) <= WIDTH or not entry.needs):
        yield line
        return
    yield f"- {fields[0]}"
    yield from (f"  {field}" for field in fields[1:])
    yield "  dependsOn:"
    yield from (f"    {line}" for line in _needs(entry.needs))


def _needs(needs: tuple[Edge, ...]) -> Iterator[str]:
    """One dependency on each line, with its reason."""
    return (f"- {_word(name)}{_comment(reason)}" for name, reason in needs)


def _comment(*reasons: str) -> str:
    return f"  # {_plain(', '.join(reasons))}"


def _word(text: str) -> str:
    return text if _BARE.fullmatch(text) and text not in _WORDS else f'"{text}"'


def _plain(text: str) -> str:
    """Replace line breaks and other control characters, which names in a cluster may contain."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
