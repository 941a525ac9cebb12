"""Files that Windlass writes: whole or not at all, with the right mode, and never through a link."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from windlass.output_files import SECRET_MODE, write_file

SOURCES = Path(__file__).parents[1] / "src/windlass"


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_report_has_the_mode_of_the_umask_and_a_secret_is_for_its_owner(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        write_file(tmp_path / "report", "r")
        write_file(tmp_path / "secret", b"s", mode=SECRET_MODE)
    finally:
        os.umask(before)
    assert (mode_of(tmp_path / "report"), mode_of(tmp_path / "secret")) == (0o666 & ~umask, 0o600)


def test_a_secret_replaces_a_file_that_others_can_read_and_whoever_has_that_open_does_not_see_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("old")
    path.chmod(0o666)
    with path.open() as held:
        write_file(path, "new", mode=SECRET_MODE)
        assert held.read() == "old"
    assert (path.read_text(), mode_of(path)) == ("new", 0o600)
    assert os.listdir(tmp_path) == ["kubeconfig"]  # noqa: PTH208


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    target, link, dangling = tmp_path / "target", tmp_path / "link", tmp_path / "dangling"
    target.write_text("of another")
    link.symlink_to(target)
    dangling.symlink_to(tmp_path / "nowhere")
    for path in (link, dangling):
        for replace in (True, False):
            with pytest.raises(OSError, match=r"symbolic link|File exists"):
                write_file(path, "mine", replace=replace)
    assert target.read_text() == "of another"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dangling", "link", "target"]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda path: path.mkdir(), "Is a directory"),
        (os.mkfifo, "not a regular file"),
        (lambda path: path.symlink_to("/dev/null"), "symbolic link"),
    ],
    ids=["directory", "pipe", "device"],
)
def test_what_is_no_file_stays(tmp_path: Path, make: object, error: str) -> None:
    path = tmp_path / "it"
    make(path)  # type: ignore[operator]
    with pytest.raises(OSError, match=error):
        write_file(path, "mine")
    assert [path.name for path in tmp_path.iterdir()] == ["it"]


def test_a_new_file_does_not_replace_one(tmp_path: Path) -> None:
    path = tmp_path / "dag.yaml"
    write_file(path, "first", replace=False)
    with pytest.raises(FileExistsError):
        write_file(path, "second", replace=False)
    assert path.read_text() == "first"


@pytest.mark.parametrize("name", [".", "..", "missing/file"])
def test_a_path_that_cannot_be_written_is_an_error_of_the_system(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError, match=r"directory"):
        write_file(Path(name), "x")


def test_no_other_code_writes_files() -> None:
    writes = re.compile(r"\.write_(text|bytes)\(|\.touch\(|open\([^)]*[\"'][wa+]|O_CREAT|write_to_textfile|mkstemp")
    found = {path.name for path in SOURCES.rglob("*.py") if writes.search(path.read_text())}
    assert found == {
        "output_files.py",
        "__main__.py",  # opens the null device in place of a closed stream
    }
