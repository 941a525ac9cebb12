"""YAML as Kubernetes parses it: timestamps stay strings. Objects that would exhaust stack or memory are refused."""

from __future__ import annotations

from typing import Any, TypeVar

import yaml

from windlass.sandbox.apiserver.wire.api_status import bad_request

V = TypeVar("V")
MAX_DEPTH = 100  # deeper than any manifest; some code calls itself three times per level, and Python allows 1000 calls
MAX_VALUES = 1_000_000  # a few lines with aliases can stand for billions of values


class TooComplex(yaml.YAMLError):
    """A document is nested too deeply, or its aliases stand for too many values."""


class KubernetesYamlLoader(yaml.CSafeLoader):
    _depth = 0

    def descend_resolver(self, _parent: Any, _index: Any) -> None:
        """Limit the depth. PyYAML calls this for each node; without a limit the C composer overflows the stack."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise TooComplex("nested too deeply")

    def ascend_resolver(self) -> None:
        self._depth -= 1


KubernetesYamlLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rows if tag != "tag:yaml.org,2002:timestamp"]
    for first, rows in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def parse_yaml(body: bytes) -> Any:
    try:
        return check_complexity(yaml.load(body, KubernetesYamlLoader))  # noqa: S506 - derived from the safe loader
    except (yaml.YAMLError, ValueError) as error:
        raise bad_request(f"error decoding YAML: {error}") from None


def check_complexity(document: V) -> V:
    """The document, unless it is too complex. Aliases count as often as they occur."""
    containers: list[tuple[Any, int]] = [([document], 0)]
    count = 0
    while containers:
        container, depth = containers.pop()
        children = container.values() if isinstance(container, dict) else container
        count += len(children)
        if depth > MAX_DEPTH or count > MAX_VALUES:
            raise TooComplex("nested too deeply, or repeated too often by aliases")
        containers += [(child, depth + 1) for child in children if isinstance(child, dict | list)]
    return document
