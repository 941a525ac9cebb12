"""The errors Windlass raises itself. Each says what is wrong, where, what to do next, and how the process ends.

WindlassError            exit 1
├── InvalidInput         exit 3: configuration, arguments, confirmation
├── OutOfTime            exit 4: the limit of the whole run, before there was anything to report
└── kube.api_errors.*    exit 1: what an API server, or the way to it, answered
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    SUCCESS = 0
    FAILURE = 1
    PARTIAL = 2
    INVALID = 3
    TIMEOUT = 4


class WindlassError(Exception):
    """A broken executor or its surroundings. A sick platform is data, never one of these."""

    exit_code: ClassVar[ExitCode] = ExitCode.FAILURE
    trouble: ClassVar[str] = ""
    """Its row in the catalogue of recommendations, if it has one."""

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text} ({self.hint})" if self.hint else text


class InvalidInput(WindlassError):
    exit_code = ExitCode.INVALID


class OutOfTime(WindlassError):
    exit_code = ExitCode.TIMEOUT
