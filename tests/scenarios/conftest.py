"""One cluster for each module: `web` and `api` are healthy, `slow` never gets ready, `sick` is Degraded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.sandbox.actors.objects import config, workload
from tests.scenarios.clusters import Running, running
from windlass.sandbox.actors.behaviours import PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator

NEVER = {f"{PREFIX}ready-after": "never"}
FILES = {
    "web/all.yaml": [config(), workload()],
    "api/all.yaml": [config("api"), workload(name="api")],
    "sick/all.yaml": [config("sick")],
    "slow/all.yaml": [workload(name="slow", annotations=NEVER)],
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("cluster")) as found:
        found.repository.push(FILES)
        found.argocd.claims["sick"] = "Degraded"
        found.deploy("web", "api", "sick", "slow")
        yield found
