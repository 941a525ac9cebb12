"""The few system calls that Python 3.11 has no name for: namespaces, mounts, and dying with the parent."""

from __future__ import annotations

import ctypes
import os
import select
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

NEW_MOUNTS = 0x00020000
NEW_CGROUPS = 0x02000000
NEW_HOSTNAME = 0x04000000
NEW_IPC = 0x08000000
NEW_PIDS = 0x20000000
NEW_NETWORK = 0x40000000

BIND = 4096
RECURSIVE = 16384
PRIVATE = 1 << 18
SHARED = 1 << 20

_PARENT_DEATH_SIGNAL = 1
_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Give the calling process (for processes: its children) namespaces of their own."""
    _check(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """mount(2)."""
    done = _libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode())
    _check(done, f"mount {kind or 'flags'} on {target}")


def dies_with_us() -> Callable[[], None]:
    """What a child has to run before its program, so that it cannot outlive this process."""
    parent = os.pidfd_open(os.getpid())
    return lambda: die_with_parent(parent)


def die_with_parent(parent: int) -> None:
    """Called in a child: the kernel kills it when the parent (a pidfd, in case it is gone already) ends."""
    _check(_libc.prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0), "prctl")
    if ended(parent):
        os._exit(1)


def ended(process: int) -> bool:
    """Whether the process of a pidfd has ended."""
    return bool(select.select([process], [], [], 0)[0])


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
