"""One question for all tests that handle secrets: does any of them show?"""

from __future__ import annotations

import traceback


def assert_hidden(thing: object, *secrets: str | bytes) -> None:
    shown = f"{thing} {thing!r}"
    if isinstance(thing, BaseException):
        shown += "".join(traceback.format_exception(thing))
        shown += f"{thing.__cause__!r}" if not thing.__suppress_context__ else ""
    for secret in secrets:
        text = secret.decode() if isinstance(secret, bytes) else secret
        assert text not in shown
