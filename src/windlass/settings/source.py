"""The source of all settings besides files: the environment of the process. `main` creates it for the commands.

`--help` loads this module, so it imports the loader only when settings are loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.kube.redactions import Redactor
from windlass.settings.variables import PLAINTEXT_CREDENTIALS, SETTINGS, option_texts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.settings.loader import Inputs
    from windlass.settings.settings import ClusterCredentials, ClusterSettings, EffectiveValue, Settings


class SettingsSource:
    """Loads the settings of a command. `options` are the options of the command line, under their click names."""

    def __init__(self, environ: Mapping[str, str], *, is_terminal: bool = False) -> None:
        """`is_terminal`: whether the log goes to a terminal, where its default format is text."""
        self._environ = environ
        self._is_terminal = is_terminal
        self.redactor = Redactor()
        """Learns every credential that the command uses."""

    def settings(self, options: Mapping[str, Any], action: str = "") -> Settings:
        """Load the settings of a command that reads a platform file; raises InvalidSettings with every problem.

        If `action` is deploy, validate or teardown, the settings that it requires must be given.
        """
        from windlass.settings.loader import load_settings  # noqa: PLC0415

        return load_settings(self._inputs(options), action)

    def cluster_settings(self, options: Mapping[str, Any]) -> ClusterSettings:
        """Load the settings of a command that reads no files."""
        from windlass.settings.loader import load_cluster_settings  # noqa: PLC0415

        return load_cluster_settings(self._inputs(options))

    def all_applications_settings(self, options: Mapping[str, Any]) -> ClusterSettings:
        """Load the settings of `validate --all`: mounted files are read, but no platform file is allowed."""
        from windlass.settings.loader import load_all_applications_settings  # noqa: PLC0415

        return load_all_applications_settings(self._inputs(options))

    def credentials(self, options: Mapping[str, Any]) -> ClusterCredentials:
        """Load the credentials only; other settings may be invalid."""
        from windlass.settings.loader import load_credentials  # noqa: PLC0415

        return load_credentials(self._inputs(options))

    def readable_values(self, options: Mapping[str, Any]) -> tuple[EffectiveValue, ...]:
        """The options, variables and defaults that are valid, although others are not; nothing from files."""
        from windlass.settings.loader import load_readable_values  # noqa: PLC0415

        return load_readable_values(self._inputs(options))

    def environ_without_settings(self) -> dict[str, str]:
        """The environment variables that are no settings, for a child process with settings of its own."""
        variables = {setting.variable for setting in SETTINGS} | PLAINTEXT_CREDENTIALS.keys()
        return {name: value for name, value in self._environ.items() if name not in variables}

    def _inputs(self, options: Mapping[str, Any]) -> Inputs:
        from windlass.settings.loader import Inputs  # noqa: PLC0415

        return Inputs(option_texts(options), self._environ, self._is_terminal, self.redactor)
