"""`make release` rehearses: everything is made, and nothing changes; a version that cannot follow is refused."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from deepwork import __version__

ROOT = Path(__file__).parent.parent
TOOL = ROOT / "tools" / "release.py"


def git(*arguments, cwd):
    return subprocess.run(["git", *arguments], cwd=cwd, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def checkout(tmp_path):
    """A clone of this repository, with an author, and what is not committed here."""
    clone = tmp_path / "checkout"
    git("clone", "--quiet", ROOT, clone, cwd=ROOT)
    for name in git("ls-files", "--modified", "--others", "--exclude-standard", cwd=ROOT).splitlines():
        if (ROOT / name).exists():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, clone / name)
        else:
            (clone / name).unlink()
    git("config", "user.name", "T", cwd=clone)
    git("config", "user.email", "t@example.org", cwd=clone)
    git("add", "--all", cwd=clone)
    git("commit", "--quiet", "--allow-empty", "--message", "As it stands", cwd=clone)
    return clone


def release(checkout, *arguments):
    """Run the tool on a checkout."""
    command = [sys.executable, TOOL, "--root", checkout, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=290, check=False)


def state(checkout):
    """Return what a rehearsal must leave alone."""
    return [git(*command, cwd=checkout) for command in (["show-ref", "--head"], ["tag"], ["status", "--porcelain"])]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("", "is not a version"),
        ("abc", "is not a version"),
        ("1.0.x", "is not a version"),
        ("v1.0.0", "is not how a version is written"),
        ("1.00.0", "is not how a version is written"),
        ("1.0.0+mine", "is not how a version is written"),
        ("1!1.0.0", "is not how a version is written"),
        (__version__, "does not follow"),
        ("0.9.9", "does not follow"),
        ("99.0.0", "could not be installed beside"),
    ],
)
def test_a_bad_version_is_refused_before_anything_happens(checkout, version, reason):
    before = state(checkout)
    process = release(checkout, version)
    assert (process.returncode, process.stdout) == (2, "")
    assert reason in process.stderr
    assert "Traceback" not in process.stderr
    assert state(checkout) == before
    assert not (checkout / "dist").exists()


@pytest.mark.slow
def test_a_version_that_has_a_tag_is_refused(checkout):
    git("tag", "v1.5.0", cwd=checkout)
    process = release(checkout, "1.5.0")
    assert (process.returncode, process.stderr) == (2, "Error: the tag v1.5.0 exists\n")


@pytest.mark.slow
def test_a_release_without_an_author_is_refused(checkout, monkeypatch):
    git("config", "--unset", "user.email", cwd=checkout)
    monkeypatch.setenv("HOME", str(checkout.parent))
    process = release(checkout, "1.5.0")
    assert (process.returncode, process.stderr.splitlines()[-1].partition(",")[0]) == (
        2,
        "Error: git knows no user.email",
    )


@pytest.mark.slow
def test_a_release_is_not_written_from_what_is_not_committed(checkout):
    (checkout / "README.md").write_text("changed")
    process = release(checkout, "1.5.0", "--write")
    assert process.returncode == 2
    assert "not everything is committed" in process.stderr


@pytest.mark.slow
def test_a_release_whose_extras_would_name_a_folder_is_not_written(checkout):
    process = release(checkout, "1.5.0", "--write")
    assert process.returncode == 2
    assert "[tool.deepwork] distribution is a path" in process.stderr


@pytest.mark.external
@pytest.mark.slow
def test_a_rehearsal_makes_everything_and_changes_nothing(checkout):
    before = state(checkout)
    process = release(checkout, "1.5.0rc1", "--no-fixture")
    assert process.returncode == 0, process.stderr
    assert state(checkout) == before
    names = ["deepwork", *(file.parent.name for file in ROOT.glob("plugins/deepwork_*/pyproject.toml"))]
    out = checkout / "dist" / "release-1.5.0rc1"
    files = {file.name for file in out.iterdir()}
    for name in names:
        assert {f"{name}-1.5.0rc1.tar.gz", f"{name}-1.5.0rc1-py3-none-any.whl"} <= files
        assert name.replace("_", "-") in process.stdout
        with zipfile.ZipFile(out / f"{name}-1.5.0rc1-py3-none-any.whl") as wheel:
            metadata = wheel.read(f"{name}-1.5.0rc1.dist-info/METADATA").decode()
        assert "\nVersion: 1.5.0rc1\n" in metadata
    sums = dict(reversed(line.split("  ")) for line in (out / "SHA256SUMS").read_text().splitlines())
    assert sums.keys() == files - {"SHA256SUMS"}
    assert all(hashlib.sha256((out / name).read_bytes()).hexdigest() == digest for name, digest in sums.items())
    components = json.loads((out / "deepwork-1.5.0rc1.cdx.json").read_text())["components"]
    parts = {component["name"] for component in components}
    assert {name.replace("_", "-") for name in names[1:]} | {"fastmcp", "psycopg", "lit-html"} <= parts
