"""One question for all tests that handle secrets: does any of them show?"""

from __future__ import annotations


def assert_hidden(thing: object, *secrets: str | bytes) -> None:
    shown = f"{thing} {thing!r}"
    while isinstance(thing, BaseException):  # what a logger would walk
        thing = thing.__cause__ if thing.__suppress_context__ else thing.__context__
        shown += f" {thing} {thing!r}"
    for secret in secrets:
        text = secret.decode() if isinstance(secret, bytes) else secret
        assert text not in shown
