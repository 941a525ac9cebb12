"""python -m tests.testbed build | up | run | shell | pins: the bed from the command line."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.testbed import argocd, fill, gobuild, kernel, lock, packages, pins, places, requirements
from tests.testbed.bed import Bed, Cluster
from tests.testbed.components import COMPONENTS, KUBERNETES
from tests.testbed.progress import say, step


def main() -> int:
    """Parse and run; the status is what a make target ends with."""
    parser = argparse.ArgumentParser(prog="python -m tests.testbed", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="fill the cache: packages, programs, images")
    build.add_argument("--drop-go-caches", action="store_true", help="remove Go's caches once the programs are there")
    up = commands.add_parser("up", help="run a bed in the foreground until Ctrl-C")
    up.add_argument("--argocd", action="store_true", help="with Argo CD")
    run = commands.add_parser("run", help="run a command beside a bed of its own; it finds it by KUBECONFIG")
    run.add_argument("words", nargs=argparse.REMAINDER, metavar="command")
    commands.add_parser("shell", help="a shell with KUBECONFIG and kubectl of the running bed")
    commands.add_parser("pins", help="write go.mod and go.sum of all components anew").add_argument("names", nargs="*")
    try:
        return _run(parser.parse_args())
    except (RuntimeError, TimeoutError) as problem:
        say(f"testbed: {problem}")
        return 1


def _run(arguments: argparse.Namespace) -> int:
    if arguments.command == "build":
        return _build(drop_go_caches=arguments.drop_go_caches or bool(os.environ.get("WINDLASS_DROP_GO_CACHES")))
    if arguments.command == "up":
        return _up(with_argocd=arguments.argocd)
    if arguments.command == "run":
        return _beside(arguments.words)
    if arguments.command == "shell":
        return _shell()
    return _pins(arguments.names)


def _build(*, drop_go_caches: bool) -> int:
    facts = requirements.probe()
    if found := requirements.problems(facts):
        say("testbed: this machine cannot build or run the test bed:")
        for problem in found:
            say(f"  - {problem}")
        return 2
    begin = time.monotonic()
    if facts.missing_packages:
        with step(f"Debian packages {' '.join(facts.missing_packages)}"):
            packages.install(list(facts.missing_packages))
    if status := fill.run(drop_go_caches=drop_go_caches):
        return status
    say(f"testbed: everything is in {places.cache()} ({time.monotonic() - begin:.1f} s)")
    return 0


def _up(*, with_argocd: bool) -> int:
    if status := _build(drop_go_caches=False):
        return status
    bed = Bed()
    try:
        cluster = bed.cluster()
        if with_argocd:
            argocd.install(cluster)
        say(f"testbed: export KUBECONFIG={cluster.kubeconfig}")
        say(f"testbed: WINDLASS_TESTBED={cluster.state} lets tests use it; Ctrl-C ends it")
        return bed.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        bed.stop()


def _beside(command: list[str]) -> int:
    with Bed() as bed:
        cluster = bed.cluster()
        config = str(cluster.kubeconfig)
        names = {"KUBECONFIG": config, "WINDLASS_CONTRACT_KUBECONFIG": config, "WINDLASS_TESTBED": str(cluster.state)}
        return subprocess.run(
            command,
            env=os.environ | names,
            check=False,
            preexec_fn=kernel.dies_with_us(),
        ).returncode


def _shell() -> int:
    holder = lock.holder()
    if holder is None or not (Path(holder.directory) / "bed.json").exists():
        say("testbed: no bed is running; `make e2e-up` starts one")
        return 1
    cluster = Cluster(Path(holder.directory))
    programs = gobuild.built(KUBERNETES) / "bin"
    environment = os.environ | {"KUBECONFIG": str(cluster.kubeconfig), "PATH": f"{programs}:{os.environ['PATH']}"}
    return subprocess.run([os.environ.get("SHELL", "/bin/sh")], env=environment, check=False).returncode


def _pins(names: list[str]) -> int:
    for component in COMPONENTS:
        if not names or component.name in names:
            with step(f"pins of {component.name} {component.version}"):
                pins.write(component)
    return 0


if __name__ == "__main__":
    sys.exit(main())
