"""The vendored JavaScript is that of the registry, and the command that says so finds every difference."""

from __future__ import annotations

import base64
import hashlib
import http.server
import io
import json
import subprocess
import sys
import tarfile
import threading
import tomllib
from functools import partial
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parents[1]
COMMAND = PLUGIN / "tools" / "vendored.py"
VENDOR = PLUGIN / "src" / "deepwork_dashboard" / "static" / "vendor"


def test_every_vendored_file_has_the_hash_of_the_manifest():
    manifest = json.loads((VENDOR / "manifest.json").read_text())
    noted = {
        f"{name}/{file}": digest for name, package in manifest.items() for file, digest in package["files"].items()
    }
    present = {
        path.relative_to(VENDOR).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }
    assert present == noted
    for package in manifest.values():
        assert package["version"]
        assert package["license"]
        assert package["integrity"].startswith("sha512-")
        assert "LICENSE" in package["files"]


@pytest.mark.external
@pytest.mark.slow
def test_the_vendored_files_are_those_of_the_registry():
    completed = subprocess.run([sys.executable, COMMAND], capture_output=True, text=True, check=False)
    if completed.returncode == 69:
        pytest.skip(f"THE VENDORED FILES ARE NOT COMPARED: {completed.stderr}")
    assert completed.returncode == 0, completed.stderr


class Registry:
    """A registry with one package, and a folder that has vendored it."""

    def __init__(self, folder, address):
        self.folder = folder
        self.address = address
        self.vendor = folder / "vendor"
        self.publish("1.0.0", {"lib.js": b"export const one = 1;\n", "LICENSE": b"MIT\n"})
        self.vendor.mkdir()
        (self.vendor / "manifest.json").write_text(json.dumps({"lib": {"files": {"lib.js": "", "LICENSE": ""}}}))
        assert self.run("--take", "lib=1.0.0").returncode == 0

    def publish(self, version, files):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for path, content in files.items():
                entry = tarfile.TarInfo(f"package/{path}")
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        tarball = packed.getvalue()
        (self.folder / "lib").mkdir(exist_ok=True)
        (self.folder / f"lib-{version}.tgz").write_bytes(tarball)
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()
        dist = {"integrity": integrity, "tarball": f"{self.address}/lib-{version}.tgz"}
        (self.folder / "lib" / version).write_text(json.dumps({"license": "MIT", "dist": dist}))

    def run(self, *arguments):
        command = [sys.executable, COMMAND, "--registry", self.address, "--folder", self.vendor, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture
def registry(tmp_path):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Registry(tmp_path, f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    server.server_close()


def test_what_is_as_published_is_said_to_be(registry):
    completed = registry.run()
    assert completed.returncode == 0
    assert "lib 1.0.0 (MIT): 2 files are those of the registry" in completed.stdout


def test_a_changed_an_added_and_a_missing_file_are_named(registry):
    (registry.vendor / "lib" / "lib.js").write_text("export const one = 2;\n")
    (registry.vendor / "lib" / "LICENSE").unlink()
    (registry.vendor / "extra.js").write_text("stolen();\n")
    completed = registry.run()
    assert completed.returncode == 1
    for problem in (
        "extra.js is not in the manifest",
        "lib/lib.js is not the file of lib 1.0.0",
        "lib/LICENSE is missing",
    ):
        assert problem in completed.stderr


def test_a_tarball_that_was_replaced_is_refused(registry):
    (registry.folder / "lib-1.0.0.tgz").write_bytes(b"something else")
    completed = registry.run()
    assert completed.returncode == 1
    assert "does not have the hash that the registry names" in completed.stderr


def test_another_version_is_taken_with_its_hashes(registry):
    registry.publish("1.1.0", {"lib.js": b"export const one = 1.1;\n", "LICENSE": b"MIT\n"})
    assert registry.run("--take", "lib=1.1.0").returncode == 0
    assert "1.1" in (registry.vendor / "lib" / "lib.js").read_text()
    assert json.loads((registry.vendor / "manifest.json").read_text())["lib"]["version"] == "1.1.0"
    assert registry.run().returncode == 0


def test_a_registry_that_does_not_answer_is_no_difference(registry):
    command = [sys.executable, COMMAND, "--registry", "http://127.0.0.1:1", "--folder", registry.vendor]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 69
    assert "did not answer" in completed.stderr


def test_the_page_names_every_module_so_that_none_waits_for_another():
    static = VENDOR.parent
    modules = {path.relative_to(static).as_posix() for path in static.rglob("*.js")}
    page = (static / "index.html").read_text()
    named = {module for module in modules if f'"static/{module}"' in page}
    assert named == modules


def test_the_metadata_names_the_licence_of_every_vendored_package_and_ships_its_text():
    folder = VENDOR.parents[3]
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    shipped = {path for pattern in project["license-files"] for path in folder.glob(pattern)}
    for name, package in json.loads((VENDOR / "manifest.json").read_text()).items():
        assert package["license"] in project["license"].split(" AND ")
        assert VENDOR / name / "LICENSE" in shipped
