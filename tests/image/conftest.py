"""The programs that build, run and serve an image."""

from __future__ import annotations

import pytest

from tests.testbed import packages


@pytest.fixture(scope="session", autouse=True)
def installed_packages() -> None:
    if missing := packages.missing():
        packages.install(missing)
