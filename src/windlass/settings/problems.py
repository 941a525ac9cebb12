"""Problems in settings and files. They are collected, so that all are reported at once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FILE_LOCATION = re.compile(r":[0-9]+:[0-9]+$")


@dataclass(frozen=True, slots=True)
class SettingsProblem:
    """`where` is file:line:column, an environment variable or an option."""

    where: str
    what: str
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text} ({self.hint})" if self.hint else text


class InvalidSettings(InvalidInput):
    recommendation_key = "ConfigurationInvalid"

    def __init__(self, problems: Sequence[SettingsProblem]) -> None:
        self.problems = tuple(problems)
        if not any(_FILE_LOCATION.search(problem.where) for problem in problems):
            self.recommendation_key = "SettingsInvalid"  # lint checks only files
        if len(self.problems) == 1:
            super().__init__(problems[0].what, where=problems[0].where, hint=problems[0].hint)
        else:
            lines = "".join(f"\n  {problem}" for problem in self.problems)
            super().__init__(f"{len(self.problems)} errors in the configuration{lines}")


def credential_source_problems(sources: Sequence[str], environ: Mapping[str, str]) -> list[SettingsProblem]:
    """The problem if not exactly one source of credentials is given; `sources` are the options and variables given."""
    if len(sources) == 1:
        return []
    if sources:
        what = "give only one of --kubeconfig (KUBECONFIG_PATH), KUBECONFIG_DATA and --in-cluster"
        return [SettingsProblem("", what, f"given: {', '.join(sources)}; --kubeconfig FILE overrides the variables")]
    what = "no cluster is named: give --kubeconfig FILE, KUBECONFIG_PATH, KUBECONFIG_DATA or --in-cluster"
    unread = 'KUBECONFIG is set but not read; use --kubeconfig "$KUBECONFIG"' if environ.get("KUBECONFIG") else ""
    return [SettingsProblem("", what, unread)]


def problem_from_error(error: InvalidInput) -> SettingsProblem:
    return SettingsProblem(error.where, error.what, error.hint)
