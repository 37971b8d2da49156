from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
FOREIGN = ("deepwork", "_deepwork", "_editable_impl_", "__editable__")


@pytest.fixture(scope="session")
def wheel_of(tmp_path_factory):
    """Build the wheel of a project's folder, without a network: the build backend is among our own tools."""
    built = {}

    def wheel_of(folder):
        if folder not in built:
            out = tmp_path_factory.mktemp("wheels")
            command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
            subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=600)
            [built[folder]] = out.glob("*.whl")
        return built[folder]

    return wheel_of


@pytest.fixture(scope="session")
def core_wheel(wheel_of):
    return wheel_of(ROOT)


@pytest.fixture
def environment(tmp_path):
    """Make a fresh environment with these wheels, and the libraries that we have installed ourselves.

    Of DeepWork and its plugins it has nothing but the wheels.
    """

    def environment(*wheels):
        home, libraries = tmp_path / "environment", tmp_path / "libraries"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True, timeout=240)
        libraries.mkdir()
        for installed in Path(sysconfig.get_path("purelib")).iterdir():
            if installed.suffix != ".pth" and not installed.name.startswith(FOREIGN):
                (libraries / installed.name).symlink_to(installed)
        python = home / "bin" / "python"
        [packages] = home.glob("lib/python*/site-packages")
        (packages / "libraries.pth").write_text(f"{libraries}\n")
        pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "install"]
        pip += ["--quiet", "--no-index", "--no-deps", "--ignore-installed"]
        subprocess.run([*pip, *map(str, wheels)], check=True, timeout=600, env={**os.environ, "PYTHONPATH": ""})
        return python

    return environment


@pytest.fixture
def run():
    """Run a command, and give what it said and its exit code."""

    def run(*command, cwd, **more):
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        ended = subprocess.run(
            list(map(str, command)),
            cwd=cwd,
            env={**clean, **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=870,
        )
        return ended.returncode, ended.stdout

    return run
