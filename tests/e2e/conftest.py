"""Makes the fixtures of the test bed known; asked for twice, they still are the same ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Register the fixtures once, whichever of the suites comes first."""
    config.pluginmanager.import_plugin("tests.testbed.fixtures")
