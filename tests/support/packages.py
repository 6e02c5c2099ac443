"""Packages under examples/ as an installer leaves them, and processes that find them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path


def installed(package: Path, folder: Path) -> Path:
    """A folder of packages with this one: its modules, and the entry points of its pyproject.toml."""
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    about = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    about.mkdir(parents=True)
    for module in package.glob("*.py"):
        shutil.copy(module, folder)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in points.items())
        for group, points in project["entry-points"].items()
    ]
    (about / "entry_points.txt").write_text("\n".join(groups))
    return folder


def ran(site: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """Python with these packages, beside their folder."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}
    return subprocess.run(
        [sys.executable, *argv], cwd=site.parent, env=environment, capture_output=True, text=True, timeout=600
    )


def run(site: Path, *argv: str) -> str:
    """What it says, if all is well."""
    done = ran(site, *argv)
    assert done.returncode == 0, done.stderr
    return done.stdout


if __name__ == "__main__":  # install ./PACKAGE, as pip does without dependencies, into the working folder
    word, package = sys.argv[1:]
    if word != "install" or not package.startswith("./"):
        sys.exit(f"takes install ./PACKAGE, got {word} {package}")
    installed(Path(package), Path())
