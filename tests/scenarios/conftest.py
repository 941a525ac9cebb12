"""One cluster for each module.

`web` and `api` are healthy, `slow` never gets ready, `sick` is Degraded, `late` is there to be moved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.sandbox.controllers.objects import config, workload
from tests.scenarios.clusters import Running, running
from windlass.sandbox.controllers.behaviours import ANNOTATION_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator

NEVER = {f"{ANNOTATION_PREFIX}ready-after": "never"}
FILES: dict[str, list[dict[str, Any]]] = {
    "web/all.yaml": [config(), workload()],
    "api/all.yaml": [config("api"), workload(name="api")],
    "sick/all.yaml": [config("sick")],
    "late/all.yaml": [config("late"), workload(name="late")],
    "slow/all.yaml": [workload(name="slow", annotations=NEVER)],
}


def moved(annotations: dict[str, str]) -> dict[str, list[dict[str, Any]]]:
    """The same, with `late` at another image."""
    return {**FILES, "late/all.yaml": [config("late"), workload(name="late", image="late:2", annotations=annotations)]}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("cluster")) as found:
        found.repository.push(FILES)
        found.argocd.health_overrides["sick"] = "Degraded"
        found.deploy("web", "api", "late", "sick", "slow")
        yield found
