"""The errors that Windlass raises. Each one has a message, a location, a hint and the exit code of the process.

WindlassError            exit 1
├── InvalidInput         exit 3: invalid configuration, arguments or confirmation
├── OutOfTime            exit 4: the timeout of the whole run passed before there was anything to report
└── kube.api_errors.*    exit 1: an error from an API server or from the connection to it
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
    """Windlass or its environment does not work. An unhealthy platform is not an error but a result in the report."""

    exit_code: ClassVar[ExitCode] = ExitCode.FAILURE
    recommendation_key: str = ""
    """Key of the matching recommendation; empty if there is none."""

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
