"""Files up to a limit; the rest of the package reads files through this module only."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from windlass.errors import InvalidInput
from windlass.kube.auth import kubeconfigs
from windlass.kube.bounded_files import MAX_FILE_BYTES, read_file

SOURCE = Path(__file__).parents[2] / "src/windlass"
OWN_FILES = {"argo/health/scripts.py", "settings/platforms.py", "cli/demo_files.py", "cli/demo_steps.py"}
"""They read files of the package, or files that they wrote."""


def test_a_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_file(path, limit=5) == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes"):
        read_file(path, limit=4)


def test_a_device_without_end_is_refused() -> None:
    with pytest.raises(InvalidInput, match=f"cannot read the kubeconfig: it is larger than {MAX_FILE_BYTES:,} bytes"):
        kubeconfigs.load_file(Path("/dev/zero"))


def test_no_module_reads_a_file_of_others_without_a_limit() -> None:
    unlimited = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in {"read_bytes", "read_text"}
    }
    assert {name for name in unlimited if not name.startswith("sandbox/")} == OWN_FILES
