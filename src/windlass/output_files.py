"""The only way in which Windlass writes a file: completely or not at all, and never through a symbolic link."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

REPORT_MODE = 0o666  # less what the umask takes away
SECRET_MODE = 0o600


def write_file(path: Path, content: str | bytes, *, mode: int = REPORT_MODE, replace: bool = True) -> None:
    """Write a file; raises OSError. Without `replace` a file that exists is an error.

    A file is replaced by renaming a temporary file in its directory, so that no reader sees half of it, and a file that
    another user prepared (a link to a third file, or one that the other user can read) is never opened.
    """
    target = path.parent / f".windlass-{secrets.token_hex(8)}.tmp" if replace else path
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(target, flags, mode), "wb") as file:
        try:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            if replace:
                require_regular_file(path)
                target.replace(path)
        except BaseException:
            target.unlink()
            raise


def require_regular_file(path: Path) -> None:
    """Raise OSError if something other than a regular file is there: a symbolic link, a directory, a device, a pipe."""
    try:
        file_type = stat.S_IFMT(path.lstat().st_mode)
    except FileNotFoundError:
        return
    if file_type == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if file_type != stat.S_IFREG:
        what = "it is a symbolic link" if file_type == stat.S_IFLNK else "it is not a regular file"
        raise OSError(errno.EINVAL, what, str(path))
