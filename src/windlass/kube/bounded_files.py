"""Files of limited size. A file that is too large is an `OSError`, like any other reason why it cannot be read."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MAX_FILE_BYTES = 10_000_000  # kubeconfigs, certificates, plans and platform files are far smaller


def read_file(path: Path, limit: int = MAX_FILE_BYTES) -> bytes:
    """The content; never reads more than `limit`, also of a device or a pipe, whose size is not known before."""
    with path.open("rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"it is larger than {limit:,} bytes", str(path))
    return content
