"""YAML as Kubernetes parses it: timestamps stay strings."""

from __future__ import annotations

from typing import Any

import yaml

from windlass.sandbox.apiserver.wire.api_status import bad_request


class KubernetesYamlLoader(yaml.CSafeLoader):
    pass


KubernetesYamlLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rows if tag != "tag:yaml.org,2002:timestamp"]
    for first, rows in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def parse_yaml(body: bytes) -> Any:
    try:
        return yaml.load(body, KubernetesYamlLoader)  # noqa: S506 - derived from the safe loader
    except yaml.YAMLError as error:
        raise bad_request(f"error decoding YAML: {error}") from None
