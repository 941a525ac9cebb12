"""Fills the cache with programs and images, in namespaces of its own: killed, it leaves no process and no mount."""

from __future__ import annotations

import shutil
import subprocess
import sys

from tests.testbed import gobuild, images, kernel, places
from tests.testbed.components import COMPONENTS
from tests.testbed.progress import say, step

_APART = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--")
_DROP = "--drop-go-caches"


def run(*, drop_go_caches: bool) -> int:
    """Fill the cache in another process; the status is 0 when everything is there."""
    command = [*_APART, sys.executable, "-m", "tests.testbed.fill", *([_DROP] if drop_go_caches else [])]
    return subprocess.run(
        command,
        cwd=places.CHECKOUT,
        check=False,
        preexec_fn=kernel.dies_with_us(),
    ).returncode


def main() -> None:
    """One at a time; what is there already is kept."""
    with places.building(lambda: say("testbed: another build is running; waiting for it")):
        for component in COMPONENTS:
            if not gobuild.built(component).is_dir():
                with step(f"{component.name} {component.version}"):
                    gobuild.build(component)
        if not images.registry().is_dir():
            images.build()
        if _DROP in sys.argv and places.go_caches().exists():
            with step("Go caches dropped"):
                shutil.rmtree(places.go_caches())


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, TimeoutError, subprocess.TimeoutExpired) as problem:
        say(f"testbed: {problem}")
        sys.exit(1)
