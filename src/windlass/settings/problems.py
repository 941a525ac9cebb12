"""Problems in settings and files. They are collected, so that all are reported at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Mistake:
    """`where` is file:line:column, an environment variable or an option."""

    where: str
    what: str
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text} ({self.hint})" if self.hint else text


class InvalidSettings(InvalidInput):
    trouble = "ConfigurationInvalid"

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        if len(self.mistakes) == 1:
            super().__init__(mistakes[0].what, where=mistakes[0].where, hint=mistakes[0].hint)
        else:
            lines = "".join(f"\n  {mistake}" for mistake in self.mistakes)
            super().__init__(f"{len(self.mistakes)} mistakes in the configuration{lines}")


def mistake_of(error: InvalidInput) -> Mistake:
    return Mistake(error.where, error.what, error.hint)
