"""Compares the vendored JavaScript with what the npm registry has, byte for byte.

    python plugins/deepwork_dashboard/tools/vendored.py                      compare
    python plugins/deepwork_dashboard/tools/vendored.py --take lit-html=3.3.4   replace by that version, and note it

The manifest beside the files names every package with its version, its licence, the registry's hash of its tarball, and
the files that were taken out of it. Exit code 1: something differs. Exit code 69: the registry cannot be reached.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import sys
import tarfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REGISTRY = "https://registry.npmjs.org"
VENDOR = Path(__file__).parents[1] / "src" / "deepwork_dashboard" / "static" / "vendor"
UNAVAILABLE = 69
SECONDS = 60


def main(arguments: list[str] | None = None) -> int:
    """Compare, or take another version."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--registry", default=REGISTRY, help="where packages come from (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=VENDOR, help="where manifest.json and the files are")
    parser.add_argument("--take", metavar="NAME=VERSION", help="replace a package by another version of it")
    options = parser.parse_args(arguments)
    manifest_file = options.folder / "manifest.json"
    manifest = json.loads(manifest_file.read_text())
    try:
        if options.take:
            name, _, version = options.take.partition("=")
            if name not in manifest or not version:
                parser.error(f"--take wants NAME=VERSION of one of: {', '.join(manifest)}")
            manifest[name] = take(options.registry, options.folder, name, version, list(manifest[name]["files"]))
            manifest_file.write_text(json.dumps(manifest, indent=2) + "\n")
        problems = list(differences(options.registry, options.folder, manifest))
    except urllib.error.URLError as error:
        print(f"Error: the registry {options.registry} did not answer: {error.reason}", file=sys.stderr)
        return UNAVAILABLE
    for problem in problems:
        print(f"Error: {problem}", file=sys.stderr)
    if not problems:
        for name, package in manifest.items():
            count = len(package["files"])
            print(f"{name} {package['version']} ({package['license']}): {count} files are those of the registry")
    return 1 if problems else 0


def take(registry: str, folder: Path, name: str, version: str, files: list[str]) -> dict[str, Any]:
    """Replace the files of a package by those of another version, and give its entry of the manifest."""
    release, members = published(registry, name, version)
    for file in files:
        target = folder / name / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(members[file])
    return {
        "version": version,
        "license": release["license"],
        "integrity": release["dist"]["integrity"],
        "files": {file: hashlib.sha256(members[file]).hexdigest() for file in files},
    }


def differences(registry: str, folder: Path, manifest: dict[str, Any]) -> Iterator[str]:
    """Return the differences from the registry."""
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    noted = {f"{name}/{file}" for name, package in manifest.items() for file in package["files"]}
    for path in sorted(present - noted - {"manifest.json"}):
        yield f"{path} is not in the manifest"
    for name, package in manifest.items():
        release, members = published(registry, name, package["version"])
        for key, value in (("license", release["license"]), ("integrity", release["dist"]["integrity"])):
            if package[key] != value:
                yield f"{name}: the manifest has the {key} {package[key]!r}, the registry has {value!r}"
        for file, digest in package["files"].items():
            path = folder / name / file
            if not path.is_file():
                yield f"{name}/{file} is missing"
            elif path.read_bytes() != members.get(file):
                yield f"{name}/{file} is not the file of {name} {package['version']} in the registry"
            elif hashlib.sha256(path.read_bytes()).hexdigest() != digest:
                yield f"{name}/{file} does not have the hash that is in the manifest"


def published(registry: str, name: str, version: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the record of a release, and the files of its tarball, whose hash has been checked."""
    release = json.loads(fetch(f"{registry}/{name}/{version}"))
    tarball = fetch(release["dist"]["tarball"])
    algorithm, _, expected = release["dist"]["integrity"].partition("-")
    if hashlib.new(algorithm, tarball).digest() != base64.b64decode(expected):
        raise SystemExit(f"Error: the tarball of {name} {version} does not have the hash that the registry names")
    with tarfile.open(fileobj=io.BytesIO(tarball)) as archive:
        members = {entry.name.partition("/")[2]: archive.extractfile(entry) for entry in archive if entry.isfile()}
        return release, {path: content.read() for path, content in members.items() if content}


def fetch(url: str) -> bytes:
    """Return the body of the answer of an address."""
    with urllib.request.urlopen(url, timeout=SECONDS) as response:
        content: bytes = response.read()
        return content


if __name__ == "__main__":
    sys.exit(main())
