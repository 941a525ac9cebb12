"""Writes the files in go/<component>/ anew from the descriptions: the one step that resolves versions."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.testbed import gobuild, places

if TYPE_CHECKING:
    from tests.testbed.components import Component


def write(component: Component) -> None:
    """Resolve the component's module graph once and keep it under its name."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        upstream = Path(_go_json(work, "mod", "download", "-json", f"{component.module}@{component.version}")["Dir"])
        upstream_mod = _go_json(work, "mod", "edit", "-json", str(upstream / "go.mod"))
        (work / "go.mod").write_text(_go_mod(component, upstream_mod))
        (work / "tools.go").write_text(_tools_go(component))
        if (upstream / "go.sum").exists():
            # Some checksums can no longer be looked up; upstream wrote them down when they could.
            shutil.copyfile(upstream / "go.sum", work / "go.sum")
        _go(work, "mod", "tidy")
        target = places.SOURCE / "go" / component.name
        target.mkdir(parents=True, exist_ok=True)
        for file in ("go.mod", "go.sum", "tools.go"):
            shutil.copyfile(work / file, target / file)


def _go_mod(component: Component, upstream: dict[str, Any]) -> str:
    """A module that requires the component, with upstream's replacements: Go ignores those of a dependency."""
    lines = [f"module windlass.invalid/testbed/{component.name}", "", f"go {upstream['Go']}", ""]
    lines.append(f"require {component.module} {component.version}")
    for rule in upstream.get("Replace") or ():
        old, new = rule["Old"], rule["New"]
        at = f"{old['Path']} {old['Version']}" if "Version" in old else old["Path"]
        if not new["Path"].startswith("."):
            lines.append(f"replace {at} => {new['Path']} {new['Version']}")
        elif component.staging and new["Path"].startswith("./staging/"):
            lines.append(f"replace {at} => {old['Path']} {component.staging}")
    return "\n".join(lines) + "\n"


def _tools_go(component: Component) -> str:
    imports = "".join(f'import _ "{program.package}"\n' for program in component.programs)
    return f"//go:build tools\n\npackage tools\n\n{imports}"


def _go(work: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["go", *arguments],
        cwd=work,
        env=gobuild.environment(),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=1200,
    )
    return done.stdout


def _go_json(work: Path, *arguments: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(_go(work, *arguments))
    return answer
