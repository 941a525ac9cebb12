"""The only door into the node: accepts on a socket from outside its network namespace, connects inside it."""

from __future__ import annotations

import socket
import sys
import threading

from tests.testbed import addresses

_CHUNK = 256 * 1024


def main() -> None:
    """python -m tests.testbed.forward DESCRIPTOR: the listening socket is inherited, and keeps its namespace."""
    listener = socket.socket(fileno=int(sys.argv[1]))
    while True:
        outside, _ = listener.accept()
        threading.Thread(target=_connect, args=(outside,), daemon=True).start()


def _connect(outside: socket.socket) -> None:
    try:
        inside = socket.create_connection(("127.0.0.1", addresses.API_PORT), timeout=10)
    except OSError:
        outside.close()
        return
    inside.settimeout(None)
    for end in (inside, outside):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    back = threading.Thread(target=_pump, args=(inside, outside), daemon=True)
    back.start()
    _pump(outside, inside)
    back.join()
    inside.close()
    outside.close()


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Copy until one side ends, and pass the end on."""
    try:
        while data := source.recv(_CHUNK):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:  # it was closed already
                continue


if __name__ == "__main__":
    main()
