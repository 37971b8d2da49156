"""Makes a release: `make release VERSION=1.2.3`.

    python tools/release.py 1.2.3            rehearse: make everything in `dist/release-1.2.3`, and change nothing here
    python tools/release.py 1.2.3 --write    and then put the two commits and the tag `v1.2.3` on this branch

All distributions have the same version. In a clone of HEAD the version is written, `changes/` becomes a part of the
changelog, wheels and sdists are built and checked, and what this release stores is kept as a fixture for later ones.
The folder has the files with their checksums, and a list of all parts (SBOM). Only if everything went well, `--write`
takes the commits over, which git alone can undo. Nothing is uploaded: `.github/workflows/release.yml` would do that.

Exit code 1: something failed; 2: the version, or what stands here, cannot be released.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from install import project_folders, project_table
from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parent.parent


def main(arguments: list[str] | None = None) -> int:
    """Rehearse or make a release."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", help="of all distributions, such as 1.2.3 or 1.3.0rc1")
    parser.add_argument("--write", action="store_true", help="put the commits and the tag on this branch")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout")
    parser.add_argument("--no-fixture", action="store_true", help="without PostgreSQL: leave out the stored state")
    options = parser.parse_args(arguments)
    root: Path = options.root.resolve()
    version = checked_version(options.version, root)
    author = {key: setting(key, root) for key in ("user.name", "user.email")}
    if options.write:
        check_that_it_may_be_written(root, has_fixture=not options.no_fixture)
    out = root / "dist" / f"release-{version}"
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="release-") as folder:
        clone = Path(folder) / "clone"
        run(["git", "clone", "--quiet", "--no-hardlinks", str(root), str(clone)], cwd=root)
        for key, value in author.items():
            run(["git", "config", key, value], cwd=clone)
        write_version(clone, version)
        commit(clone, f"Release {version}")
        print(f"{version}: {', '.join(name for _, name in projects(clone))}", flush=True)
        environment = Path(folder) / "environment"
        run([sys.executable, "tools/wheels.py", str(out), str(environment)], cwd=clone)
        python = environment / "bin" / "python"
        write_parts(python, out / f"deepwork-{version}.cdx.json", clone)
        if not options.no_fixture:
            keep_stored_state(clone, python, version)
            commit(clone, f"Keep what {version} stores")
        write_checksums(out)
        if options.write:
            run(["git", "pull", "--quiet", "--ff-only", str(clone), "HEAD"], cwd=root)
            run(["git", "tag", "--annotate", "--message", f"Release {version}", f"v{version}"], cwd=root)
    for file in sorted(out.iterdir()):
        print(f"  {file.name}")
    print(f"{out}: {'released; push the branch and the tag' if options.write else 'rehearsed; nothing was changed'}")
    return 0


def checked_version(text: str, root: Path) -> Version:
    """Return the version, if it may follow the present one."""
    try:
        version = Version(text)
    except InvalidVersion:
        refuse(f"{text!r} is not a version: write 1.2.3, or 1.3.0rc1 before 1.3.0")
    current = Version(project_table(root)["version"])
    if str(version) != text or version.local or version.epoch:
        refuse(f"{text!r} is not how a version is written; {version.public!r} is")
    if version <= current:
        refuse(f"{version} does not follow {current}, which stands in pyproject.toml")
    if output(["git", "tag", "--list", f"v{version}"], cwd=root):
        refuse(f"the tag v{version} exists")
    for folder, name in projects(root):
        for need in project_table(folder).get("dependencies", []):
            requirement = Requirement(need)
            is_met = requirement.specifier.contains(version, prereleases=True)
            if requirement.name.startswith("deepwork") and not is_met:
                refuse(f"{name} needs {need}, so it could not be installed beside {version}")
    return version


def check_that_it_may_be_written(root: Path, *, has_fixture: bool) -> None:
    """Refuse a release from a state that is not HEAD, or whose wheels would name places of this machine."""
    if changes := output(["git", "status", "--porcelain"], cwd=root):
        refuse(f"not everything is committed:\n{changes}")
    place = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["deepwork"]["distribution"]
    if place.endswith(".whl") and "://" not in place:
        refuse("[tool.deepwork] distribution is a path, so the extras in the wheels would name folders of this machine")
    if not has_fixture:
        refuse("a release keeps what it stores: --no-fixture is for rehearsals")


def setting(key: str, root: Path) -> str:
    """Return what git knows of the author of the commits."""
    value = subprocess.run(["git", "config", key], cwd=root, capture_output=True, text=True, check=False).stdout.strip()
    if not value:
        refuse(f"git knows no {key}, and a release is commits: git config {key} …")
    return value


def write_version(root: Path, version: Version) -> None:
    """Write the version everywhere, and the changelogs."""
    today = datetime.now(tz=UTC).date().isoformat()
    old = project_table(root)["version"]
    for folder, _ in projects(root):
        replace(folder / "pyproject.toml", f'\nversion = "{old}"\n', f'\nversion = "{version}"\n')
        if folder != root:
            log = folder / "CHANGELOG.md"
            text = log.read_text(encoding="utf-8")
            heading = f"## {version} ({today})"
            news = f"{heading}\n\n- Released with `deepwork` {version}.\n\n## "
            text = (
                text.replace("## Unreleased", heading, 1) if "## Unreleased" in text else text.replace("## ", news, 1)
            )
            log.write_text(text, encoding="utf-8")
    replace(root / "src" / "deepwork" / "__init__.py", f'"{old}"', f'"{version}"')
    for page in [*root.glob("docs/**/*.md"), *root.glob("src/deepwork/plugin_template/*.md"), root / "README.md"]:
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace(f"-{old}-py3-none-any.whl", f"-{version}-py3-none-any.whl"), encoding="utf-8")
    run([sys.executable, "tools/distribution.py"], cwd=root)
    build = [sys.executable, "-m", "towncrier", "build", "--yes", "--version", str(version), "--date", today]
    run(build, cwd=root)


def write_parts(python: Path, file: Path, clone: Path) -> None:
    """Write all that is installed, and what is copied into it, with versions and licences, as CycloneDX."""
    command = ["cyclonedx_py", "environment", "--output-reproducible", "--pyproject", "pyproject.toml"]
    run([sys.executable, "-m", *command, "--output-file", str(file), str(python)], cwd=clone)
    parts = json.loads(file.read_text(encoding="utf-8"))
    parts["components"] += copied_parts(clone)
    file.write_text(json.dumps(parts, indent=2) + "\n", encoding="utf-8")


def copied_parts(clone: Path) -> list[dict[str, object]]:
    """Return the npm packages that plugins hold copies of, by the manifests beside these."""
    manifests = sorted(clone.glob("plugins/*/src/*/static/vendor/manifest.json"))
    packages = [item for file in manifests for item in json.loads(file.read_text(encoding="utf-8")).items()]
    return [
        {
            "type": "library",
            "bom-ref": f"pkg:npm/{name}@{package['version']}",
            "name": name,
            "version": package["version"],
            "licenses": [{"license": {"id": package["license"]}}],
            "purl": f"pkg:npm/{name}@{package['version']}",
        }
        for name, package in packages
    ]


def keep_stored_state(clone: Path, python: Path, version: Version) -> None:
    """Make the fixture of stored state with the release that has just been built."""
    testing = project_table(clone)["optional-dependencies"]
    run([sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(python), *testing["testing"]], clone)
    number = output(["git", "rev-parse", "--short=7", "HEAD"], cwd=clone)
    run([str(python), "tests/stored_state.py", f"tests/data/stored/{version}-{number}"], cwd=clone)


def write_checksums(out: Path) -> None:
    """Write what `sha256sum --check` reads."""
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(out.iterdir())]
    (out / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


def commit(clone: Path, subject: str) -> None:
    """Commit everything in the clone."""
    run(["git", "add", "--all"], cwd=clone)
    run(["git", "commit", "--quiet", "--message", subject], cwd=clone)


def projects(root: Path) -> list[tuple[Path, str]]:
    """Return the folder and the name of each distribution, the core first."""
    return [(folder, project_table(folder)["name"]) for folder in project_folders(root)]


def replace(file: Path, old: str, new: str) -> None:
    """Replace a text that stands once in a file."""
    text = file.read_text(encoding="utf-8")
    if text.count(old) != 1:
        sys.exit(f"Error: {file} has {old.strip()} {text.count(old)} times")
    file.write_text(text.replace(old, new), encoding="utf-8")


def run(command: list[str], cwd: Path) -> None:
    """Run a command that has to work; what it says is shown if it does not."""
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if ended.returncode:
        sys.exit(f"{ended.stdout}{ended.stderr}Error: {' '.join(command)} failed, so there is no release")


def output(command: list[str], cwd: Path) -> str:
    """Return what a command prints."""
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True).stdout.strip()


def refuse(reason: str) -> NoReturn:
    """End without having done anything."""
    print(f"Error: {reason}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    sys.exit(main())
