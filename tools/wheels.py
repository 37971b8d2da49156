"""Builds wheels and sdists of the core and of every plugin into `dist/`, and checks them.

    python tools/wheels.py [FOLDER [ENVIRONMENT]]

Checked are names and versions, the metadata (`twine check`), what is in the files, that a wheel built from the sdist
is the same, and that everything installs into one fresh environment (`uv pip check`), which is kept if it is named.
Exit code 1: something is wrong.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from install import project_folders, project_table

ROOT = Path(__file__).parent.parent
UV = [sys.executable, "-m", "uv"]
CORE_HAS = (
    "deepwork/py.typed",
    "deepwork/packaged_jobs/project_tour/job.yml",
    "deepwork/plugin_template/pyproject.toml",
    "deepwork/plugin_template/.gitignore",
    "deepwork/plugin_template/LICENSE",
    "deepwork/plugin_template/tests/test_plugin.py",
    "deepwork/testing/contracts/saver.py",
)


def main() -> int:
    """Build, check, and print what has been found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "dist", help="for the files")
    parser.add_argument("environment", nargs="?", type=Path, help="keep the environment there")
    options = parser.parse_args()
    out: Path = options.folder
    projects = project_folders(ROOT)
    problems: list[str] = []
    built: list[Path] = []
    for project in projects:
        sdist, wheel = build(project, out)
        built += [sdist, wheel]
        wrong_files = [*wrong_contents(project, sdist, wheel), *not_from_sdist(sdist, wheel)]
        problems += [f"{wheel.name}: {problem}" for problem in wrong_files]
        print(f"{wheel.name:55} {wheel.stat().st_size / 1024:6.0f} kB  {len(names(wheel)):4} files")
    versions = {project_table(project)["version"] for project in projects}
    if len(versions) > 1:
        problems.append(f"versions differ: {', '.join(sorted(versions))}")
    problems += complaints("twine check", [sys.executable, "-m", "twine", "check", "--strict", *map(str, built)])
    wheels = [file for file in built if file.suffix == ".whl"]
    with tempfile.TemporaryDirectory() as folder:
        problems += not_installable(wheels, options.environment or Path(folder))
    for problem in problems:
        print(f"WRONG  {problem}")
    print(f"{len(built)} files in {out}: {f'{len(problems)} problems' if problems else 'all is well'}")
    return 1 if problems else 0


def build(project: Path, out: Path) -> tuple[Path, Path]:
    """Build one project, and return its sdist and its wheel."""
    stem = f"{project_table(project)['name'].replace('-', '_')}-{project_table(project)['version']}"
    run([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", str(out)], cwd=project)
    return out / f"{stem}.tar.gz", out / f"{stem}-py3-none-any.whl"


def wrong_contents(project: Path, sdist: Path, wheel: Path) -> Iterator[str]:
    """Yield what is missing in the files of a project, and what should not be in them."""
    package = project_table(project)["name"].replace("-", "_")
    inside = names(wheel)
    needed = CORE_HAS if package == "deepwork" else (f"{package}/py.typed", f"{package}/plugin.py")
    licence = f"{wheel.name.removesuffix('-py3-none-any.whl')}.dist-info/licenses/LICENSE"
    yield from (f"has no {name}" for name in (*needed, licence) if name not in inside)
    for name in inside:
        top = name.partition("/")[0]
        if top != package and not top.endswith(".dist-info"):
            yield f"has {name}, which is not of its package"
        if "__pycache__" in name:
            yield f"has {name}"
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    yield from (
        f"its sdist has no {name}"
        for name in ("pyproject.toml", "README.md", "LICENSE", "PKG-INFO")
        if name not in packed
    )


def not_from_sdist(sdist: Path, wheel: Path) -> Iterator[str]:
    """Build a wheel from the sdist, and compare: a build from source has to have the same files."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        [project] = Path(folder).iterdir()
        _, second_wheel = build(project, Path(folder) / "dist")
        for name in sorted(names(wheel) ^ names(second_wheel)):
            yield f"{name} is not in both wheels, of the folder and of the sdist"


def not_installable(wheels: list[Path], environment: Path) -> list[str]:
    """Install everything in one go, as users with PostgreSQL do, and have pip check it."""
    run([*UV, "venv", "--quiet", "--python", sys.executable, str(environment)], cwd=ROOT)
    python = ["--python", str(environment / "bin" / "python")]
    files = [f"{file}[postgresql]" if file.name.startswith("deepwork_sql") else str(file) for file in wheels]
    problems = complaints("uv pip install", [*UV, "pip", "install", "--quiet", *python, *files])
    return problems or complaints("uv pip check", [*UV, "pip", "check", *python])


def complaints(about: str, command: list[str]) -> list[str]:
    """Run a checking command, and return what it says if it fails."""
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return [f"{about}: {ended.stdout}{ended.stderr}".rstrip()] if ended.returncode else []


def run(command: list[str], cwd: Path) -> None:
    """Run a command that has to work."""
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if ended.returncode:
        sys.exit(f"{' '.join(command)}\n{ended.stdout}{ended.stderr}")


def names(wheel: Path) -> set[str]:
    """Name the files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


if __name__ == "__main__":
    sys.exit(main())
