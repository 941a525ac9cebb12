"""Rendering of a draft as a platform file, with comments that give the reason for each dependency."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from windlass.printable_text import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from windlass.core.platform.drafting.drafts import Draft, DraftNode, DraftStack, Edge

PROFILE = "simple"
MAX_LINE_WIDTH = 112
IGNORED_ANNOTATION = "its annotation adds nothing; from here on it does not count"
_PLAIN_SCALAR = re.compile(r"[a-z][a-z0-9.-]*(/[a-z0-9.-]+)?")
_RESERVED_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}  # YAML does not read these as strings


def render_platform(draft: Draft, heading: Iterable[str], name: str = "imported") -> str:
    lines = [f"# {printable(line)}" for line in heading]
    lines += ["apiVersion: windlass.dev/v1alpha1", "kind: Platform", f"metadata: {{name: {_scalar(name)}}}", "spec:"]
    lines += ["  stacks:"]
    for stack in draft.stacks:
        lines += (f"    {line}" for line in _stack_lines(stack))
    return "\n".join(lines) + "\n"


def _stack_lines(stack: DraftStack) -> Iterator[str]:
    yield f"# {printable(stack.description)}"
    yield f"- name: {_scalar(stack.name)}"
    if stack.dependencies:
        yield "  dependsOn:"
        yield from (f"    {line}" for line in _dependency_lines(stack.dependencies))
    yield "  applications:"
    for node in stack.nodes:
        yield from (f"    {line}" for line in _node_lines(node))


def _node_lines(node: DraftNode) -> Iterator[str]:
    """One line if it is short and has at most one reason; otherwise one line for each field and dependency."""
    fields = [f"name: {_scalar(node.name)}", f"profile: {PROFILE}"]
    fields += [f"application: {_scalar(node.target)}"] if node.target else []
    yield from (f"# left out: {printable(line)}" for line in node.omitted)
    if node.dependencies is None:
        yield f"- {{{', '.join(fields)}}}"
        return
    reasons = {reason for _, reason in node.dependencies} or {IGNORED_ANNOTATION}
    dependencies = f"dependsOn: [{', '.join(_scalar(name) for name, _ in node.dependencies)}]"
    line = f"- {{{', '.join([*fields, dependencies])}}}{_comment(*reasons)}"
    if len(reasons) == 1 and (len(line) <= MAX_LINE_WIDTH or not node.dependencies):
        yield line
        return
    yield f"- {fields[0]}"
    yield from (f"  {field}" for field in fields[1:])
    yield "  dependsOn:"
    yield from (f"    {line}" for line in _dependency_lines(node.dependencies))


def _dependency_lines(dependencies: tuple[Edge, ...]) -> Iterator[str]:
    """One dependency on each line, with its reason."""
    return (f"- {_scalar(name)}{_comment(reason)}" for name, reason in dependencies)


def _comment(*reasons: str) -> str:
    return f"  # {printable(', '.join(reasons))}"


def _scalar(text: str) -> str:
    return text if _PLAIN_SCALAR.fullmatch(text) and text not in _RESERVED_WORDS else f'"{text}"'
