"""Files in a directory, and the settings read from them."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from windlass.settings.problems import InvalidSettings
from windlass.settings.source import SettingsSource

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from windlass.settings.settings import Settings

ENVIRONMENT = """\
name: staging
domain: example.org
gitRepository: https://git.example.org/platform.git
gitRevision: main
"""
HEAD = "apiVersion: windlass.dev/v1alpha1\nkind: Platform\nmetadata: {name: mine}\nspec:\n"


def spec(text: str) -> str:
    """A platform file whose specification is this."""
    return HEAD + textwrap.indent(textwrap.dedent(text), "  ")


class World:
    """Everything that can be given, and no more than is given: nothing is read from outside the directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.environ: dict[str, str] = {}
        self.options: dict[str, str | None] = {
            "secrets": str(directory / "secrets"),
            "health-checks": str(directory / "health"),
        }
        for name in ("secrets", "health"):
            (directory / name).mkdir(exist_ok=True)

    def file(self, option: str, text: str) -> None:
        path = self.directory / {"dag": "dag.yaml", "environment-file": "environment.yaml"}[option]
        path.write_text(text)
        self.options[option] = str(path)

    def mount(self, name: str, text: str = "x") -> None:
        path = self.directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def load(self, action: str = "", environ: Mapping[str, str] | None = None) -> Settings:
        return SettingsSource({**self.environ, **(environ or {})}).settings(self.options, action)

    def mistakes(self, action: str = "", environ: Mapping[str, str] | None = None) -> list[str]:
        """Without the directory, so that tests can name files."""
        with pytest.raises(InvalidSettings) as refused:
            self.load(action, environ)
        assert refused.value.exit_code == 3
        return [str(mistake).replace(f"{self.directory}/", "") for mistake in refused.value.problems]
