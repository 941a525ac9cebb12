"""Everything that is missing is said at once, with amounts and places."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.testbed import cgroups, requirements
from tests.testbed.requirements import GIB, Facts, problems

GOOD = Facts(
    system="Linux",
    machine="x86_64",
    root=True,
    namespaces=frozenset({"cgroup", "ipc", "mnt", "net", "pid", "uts"}),
    cgroups=frozenset(cgroups.NEEDED),
    overlay=True,
    apt=True,
    missing_packages=("containerd", "buildah"),
    go=(1, 99),
    go_may_switch=False,
    unbuilt=("etcd", "kubernetes"),
    images_built=False,
    memory=64 * GIB,
    cache=Path("/cache"),
    cache_disk=500 * GIB,
    state=Path("/scratch"),
    state_disk=500 * GIB,
    same_disk=False,
)


def test_a_machine_with_everything_has_no_problem() -> None:
    assert problems(GOOD) == []


def test_all_that_is_missing_is_said_at_once() -> None:
    bare = replace(
        GOOD,
        machine="riscv64",
        root=False,
        namespaces=frozenset({"mnt"}),
        cgroups=frozenset(),
        overlay=False,
        apt=False,
        go=None,
        memory=GIB,
        cache_disk=2 * GIB,
        state_disk=GIB // 2,
    )
    said = problems(bare)
    expected = (
        *("riscv64", "root is needed", "cgroup, ipc, net, pid, uts", "cgroup v1", "overlay", "containerd, buildah"),
        *("no `go` on PATH", "there are 1.0 GiB", "at /cache, there are 2.0 GiB", "at /scratch, there are 0.5 GiB"),
    )
    assert len(said) == len(expected)
    for line, part in zip(said, expected, strict=True):
        assert part in line


def test_missing_packages_are_no_problem_where_apt_is() -> None:
    assert problems(replace(GOOD, apt=True, missing_packages=("runc",))) == []


def test_an_old_go_will_do_when_it_may_fetch_a_newer_one() -> None:
    old = replace(GOOD, go=(1, 22))
    assert len(problems(old)) == 1
    assert problems(replace(old, go_may_switch=True)) == []
    assert len(problems(replace(old, go=(1, 19), go_may_switch=True))) == 1


def test_with_a_warm_cache_neither_go_nor_its_disk_is_needed() -> None:
    warm = replace(GOOD, unbuilt=(), images_built=True, go=None, cache_disk=0, memory=requirements.RUN_MEMORY)
    assert problems(warm) == []


def test_needs_add_up_when_cache_and_state_share_a_disk() -> None:
    both = requirements.BUILD_DISK + requirements.IMAGES_DISK + requirements.RUN_DISK
    assert problems(replace(GOOD, same_disk=True, cache_disk=both)) == []
    assert len(problems(replace(GOOD, same_disk=True, cache_disk=both - 1))) == 1
