"""What is imported is declared, what is declared is imported and pinned; the audit of the pins says what it knows."""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from datetime import date
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.utils import canonicalize_name

from tests import advisories

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
DECLARED = {
    canonicalize_name(re.split("[<>=~! ]", requirement)[0])
    for requirement in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
}


def imported_modules(tree: ast.AST) -> Iterator[str]:
    """Top-level names of all modules that are imported at run time, also inside functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]
        else:
            yield from imported_modules(node)


def test_the_package_imports_exactly_what_it_declares() -> None:
    sources = (ROOT / "src").rglob("*.py")
    modules = {name for path in sources for name in imported_modules(ast.parse(path.read_text()))}
    foreign = modules - set(sys.stdlib_module_names) - {"windlass"}
    distributions = packages_distributions()
    assert {canonicalize_name(distributions[name][0]) for name in foreign} == DECLARED


def test_each_declared_dependency_is_pinned_with_hashes() -> None:
    text = (ROOT / "requirements/run.txt").read_text()
    assert advisories.pins([ROOT / "requirements/run.txt"]).keys() >= DECLARED
    assert all("--hash=sha256:" in block for block in re.split(r"\n(?=\S)", text.strip()))


ADVISORY = {
    "id": "PYSEC-1",
    "modified": "2026-11-01T00:00:00Z",
    "details": "it is broken",
    "affected": [
        {
            "package": {"ecosystem": "PyPI", "name": "PyYAML"},
            "ranges": [
                {
                    "type": "ECOSYSTEM",
                    "events": [{"introduced": "0"}, {"fixed": "5.4"}, {"introduced": "6.1"}, {"last_affected": "6.2"}],
                },
                {"type": "GIT", "events": [{"introduced": "0"}]},
            ],
            "versions": ["1.0", "6.0.9"],
        }
    ],
}


@pytest.mark.parametrize(
    ("version", "is_affected"),
    [("5.3", True), ("5.4", False), ("6.0.3", False), ("6.0.9", True), ("6.1", True), ("6.2", True), ("6.3", False)],
)
def test_an_advisory_affects_its_versions(tmp_path: Path, version: str, is_affected: bool) -> None:
    (tmp_path / "one.json").write_text(json.dumps(ADVISORY))
    (tmp_path / "other.yaml").write_text(json.dumps({**ADVISORY, "withdrawn": "2026-11-02T00:00:00Z"}))
    (tmp_path / "README.md").write_text("no advisory")
    result = advisories.audit(tmp_path, {"pyyaml": {version}, "click": {"1.0"}})
    assert result.findings == ([f"pyyaml {version}: PYSEC-1: it is broken"] if is_affected else [])
    assert result.newest == "2026-11-01"


def test_the_audit_says_plainly_that_it_could_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    today = date(2026, 11, 20)
    assert advisories.main([], today) == 2
    assert advisories.main([str(tmp_path)], today) == 2
    (tmp_path / "old.json").write_text(json.dumps({**ADVISORY, "modified": "2024-10-10T00:00:00Z"}))
    assert advisories.main([str(tmp_path)], today) == 2
    assert capsys.readouterr().out.count("NOT AUDITED") == 3
    (tmp_path / "new.json").write_text(json.dumps(ADVISORY))
    assert advisories.main([str(tmp_path)], today) == 0
    assert "No advisory up to 2026-11-01 affects" in capsys.readouterr().out
    everything = {
        "package": {"ecosystem": "PyPI", "name": "PyYAML"},
        "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}]}],
    }
    (tmp_path / "bad.json").write_text(json.dumps({**ADVISORY, "affected": [everything]}))
    assert advisories.main([str(tmp_path)], today) == 1
