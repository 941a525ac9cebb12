"""Documents that cannot lie: what they name exists, what exists they name."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(path.parent for path in (ROOT / "src/windlass").rglob("__init__.py"))
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()
TARGETS = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
DOCUMENTS = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    (ROOT / "docs").rglob("*.md")
)


@pytest.mark.parametrize("package", PACKAGES[1:], ids=lambda path: path.name)
def test_each_folder_stands_in_the_code_map_with_its_own_first_line(package: Path) -> None:
    docstring = ast.get_docstring(ast.parse((package / "__init__.py").read_text()))
    assert docstring
    name = str(package.relative_to(ROOT / "src/windlass")).replace("/", ".")
    assert f"| `{name}` | {docstring.splitlines()[0]} |" in ARCHITECTURE


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_each_make_target_that_a_document_names_exists(document: Path) -> None:
    assert set(re.findall(r"`make ([a-z0-9-]+)", document.read_text())) <= TARGETS


def links(document: Path) -> list[tuple[Path, str]]:
    """The file and the anchor of each relative link."""
    targets = re.findall(r"\]\(([^):]+)\)", document.read_text())
    split = [target.partition("#") for target in targets]
    return [((document.parent / name).resolve() if name else document, anchor) for name, _, anchor in split]


def anchors(document: Path) -> set[str]:
    """The anchors that GitHub makes from headings."""
    prose = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_each_link_leads_to_a_file_and_a_heading(document: Path) -> None:
    for target, anchor in links(document):
        assert target.exists(), target
        assert not anchor or anchor in anchors(target), f"{target.name}#{anchor}"


def test_each_page_is_reachable_from_the_index() -> None:
    seen, waiting = set[Path](), [ROOT / "docs/README.md"]
    while waiting:
        page = waiting.pop()
        seen.add(page)
        waiting += {target for target, _ in links(page) if target.suffix == ".md"} - seen
    assert set((ROOT / "docs").rglob("*.md")) <= seen


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_each_path_that_a_document_names_exists(document: Path) -> None:
    """`kube/leases.py` may be below the package, below its folder named just before, or below the repository."""
    for name in re.findall(r"`([a-z_./]+\.py)`", document.read_text()):
        assert list((ROOT / "src").rglob(name)) or (ROOT / name).exists() or list((ROOT / "tests").rglob(name)), name


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_each_test_that_a_document_names_exists(document: Path) -> None:
    named = set(re.findall(r"`(test_[a-z0-9_]+)`", document.read_text()))
    texts = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py")] if named else []
    assert not {name for name in named if not any(f"def {name}(" in text for text in texts)}


def test_each_folder_has_a_contract_that_lists_its_modules() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    covered = {name for contract in contracts for name in contract.get("containers", ())}
    covered |= {name.removesuffix(".*") for contract in contracts for name in contract.get("modules", ())}
    assert {str(path.relative_to(ROOT / "src")).replace("/", ".") for path in PACKAGES} == covered


def test_ci_runs_only_what_a_person_is_told_to_run() -> None:
    told = (ROOT / "README.md").read_text() + (ROOT / "CONTRIBUTING.md").read_text()
    for target in re.findall(r"^run \d+ ([a-z0-9-]+)", (ROOT / ".ci/run").read_text(), re.MULTILINE):
        assert f"`make {target}`" in told or f"\nmake {target}" in told, target


def test_each_decision_names_the_rejected_alternatives() -> None:
    decisions = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
    assert decisions
    for decision in decisions:
        text = decision.read_text()
        assert re.search(r"^Date: \d{4}-\d\d-\d\d$", text, re.MULTILINE), decision.name
        for heading in ("## Context", "## Decision", "## Rejected alternatives"):
            assert heading in text, f"{decision.name} lacks {heading}"


def test_no_registry_and_no_private_path_stands_in_a_committed_file() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout: an unpacked source archive has nothing committed")
    forbidden = re.compile(
        r"https?://[a-z0-9.-]*(pythonhoste[d]|pyp[i]\.|npmj[s]\.|golan[g]\.org/)|/roo[t]/|/hom[e]/[a-z]"
    )
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.is_file() and path.suffix in {".py", ".md", ".txt", ".toml", ".mod", ".sum", ".yaml", ".json", ""}:
            found = forbidden.search(path.read_text(errors="replace"))
            assert not found, f"{name}: {found}"
