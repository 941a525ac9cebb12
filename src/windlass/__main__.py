"""The process: hands in arguments and environment, hands out the exit code."""

from __future__ import annotations

import os
import sys

from windlass.cli.main import main


def run() -> None:
    sys.exit(main(sys.argv[1:], os.environ))  # noqa: TID251 - the one place where the environment comes in


if __name__ == "__main__":
    run()
