"""python -m tests.wheels DIRECTORY: installs the wheel there on every Python we support, and runs it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from windlass import __version__

SUPPORTED = ["3.11", "3.12", "3.13"]
REQUIREMENTS = Path(__file__).parent.parent / "requirements/run.txt"


def interpreters() -> dict[str, str]:
    """By version: those on PATH, those of pyenv, and the one that runs this."""
    candidates = [sys.executable, *(there for v in SUPPORTED if (there := shutil.which(f"python{v}")))]
    candidates += [str(path) for path in sorted(Path("~/.pyenv/versions").expanduser().glob("*/bin/python3"))]
    found: dict[str, str] = {}
    for candidate in candidates:
        asked = subprocess.run([candidate, "--version"], capture_output=True, text=True, check=False)
        if said := re.match(r"Python (\d+\.\d+)\.", asked.stdout):
            found.setdefault(said[1], candidate)
    return {version: found[version] for version in SUPPORTED if version in found}


def try_on(interpreter: str, wheel: Path) -> str:
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([interpreter, "-m", "venv", directory], check=True)
        pip = [f"{directory}/bin/pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--no-deps", "--require-hashes", "-r", str(REQUIREMENTS)], check=True)
        subprocess.run([*pip, "--no-deps", str(wheel)], check=True)
        imports = "import windlass.cli.cluster_summary, windlass.kube.client.reflectors, windlass.kube.client.clients"
        subprocess.run([f"{directory}/bin/python", "-W", "error", "-c", imports], check=True)
        said = subprocess.run([f"{directory}/bin/windlass", "--version"], capture_output=True, text=True, check=True)
        return said.stdout.strip()


def main(directory: str) -> None:
    [wheel] = Path(directory).glob("*.whl")
    found = interpreters()
    for version in SUPPORTED:
        if version not in found:
            print(f"Python {version}: not on this machine")
            continue
        said = try_on(found[version], wheel)
        if said != f"windlass {__version__}":
            raise SystemExit(f"Python {version}: said {said!r}")
        print(f"Python {version}: {wheel.name} installs, {said!r}")


if __name__ == "__main__":
    main(sys.argv[1])
