"""What clients read of this repository when they take it as a marketplace, and the programs of the plugin."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deepwork.testing.wire import PATIENCE

ROOT = Path(__file__).parent.parent
PLUGIN = ROOT / "marketplace/deepwork"
UV = """\
#!/bin/sh
echo "$@" >> "$(dirname "$0")/calls"
for last; do :; done
case "$1" in
venv) mkdir -p "$last/bin" ;;
pip)
    sleep 0.3
    [ -e "$(dirname "$0")/broken" ] && echo "no network" && exit 2
    printf '#!/bin/sh\\necho "started $*"\\n' > "$(dirname "$4")/deepwork"
    chmod +x "$(dirname "$4")/deepwork" ;;
esac
"""


def generated():
    spec = importlib.util.spec_from_file_location("marketplace", ROOT / "tools/marketplace.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.files()


def test_the_files_are_those_that_make_reference_writes():
    assert [name for name, text in generated().items() if (ROOT / name).read_text() != text] == []


def test_every_file_of_the_plugin_is_written_or_a_program_or_a_link_to_sources():
    expected = {*generated(), *(f"marketplace/deepwork/bin/{name}" for name in ("deepwork", "make-environment"))}
    paths = {str(path.relative_to(ROOT)): path for path in PLUGIN.rglob("*") if path.is_symlink() or path.is_file()}
    links = {name for name, path in paths.items() if path.is_symlink()}
    assert paths.keys() - links == {name for name in expected if name.startswith("marketplace/")}
    assert all(paths[name].resolve().is_relative_to(ROOT) and paths[name].exists() for name in links)
    plugins = {path.name for path in ROOT.glob("plugins/deepwork_*")}
    assert {Path(name).name for name in links} == {"src", "pyproject.toml", "README.md", "LICENSE", *plugins}


def test_marketplace_and_plugin_are_both_named_deepwork():
    for file in (".claude-plugin/marketplace.json", ".agents/plugins/marketplace.json"):
        marketplace = json.loads((ROOT / file).read_text())
        assert [marketplace["name"], *(plugin["name"] for plugin in marketplace["plugins"])] == ["deepwork", "deepwork"]


class Client:
    """A client's folder with the plugin, as Claude Code or Codex copies it, and a uv that pretends."""

    def __init__(self, folder, *, with_sources):
        self.home = folder / "a home"
        self.root = self.home / "plugins/cache/deepwork/deepwork/1.0"
        shutil.copytree(PLUGIN, self.root, symlinks=True, ignore=shutil.ignore_patterns("source"))
        if with_sources:
            self.sources = self.root / "source"
        else:
            self.sources = folder / "checkout"
            (self.home / "config.toml").write_text(
                f'[marketplaces.x]\nsource = "/other"\n\n[marketplaces.deepwork]\nsource = "{self.sources}"\n\n[x]\n'
            )
        (self.sources / "plugins/deepwork_sql").mkdir(parents=True)
        (self.sources / "pyproject.toml").touch()
        self.programs = folder / "programs"
        self.programs.mkdir()
        (self.programs / "uv").write_text(UV)
        (self.programs / "uv").chmod(0o755)

    def start(self, *words, **more):
        environment = {"PATH": f"{self.programs}:/usr/bin:/bin", "HOME": str(self.home)}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen([self.root / "bin/deepwork", *words], env=environment, **pipes, **more)

    def run(self, *words):
        process = self.start(*words)
        out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out, err

    @property
    def calls(self):
        file = self.programs / "calls"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture(params=[True, False], ids=["claude", "codex"])
def client(request, tmp_path):
    return Client(tmp_path, with_sources=request.param)


def test_the_first_start_makes_an_environment_and_later_ones_use_it(client):
    assert client.run("serve", "--path", ".") == (0, "started serve --path .\n", "")
    assert client.run("serve") == (0, "started serve\n", "")
    [_, install] = client.calls
    assert install.endswith(f"{client.sources} {client.sources}/plugins/deepwork_sql")
    [receipt] = client.home.rglob("deepwork-install.json")
    assert json.loads(receipt.read_text())["route"] == "plugin"
    assert receipt.parent.parent == client.home / "plugins/data/deepwork-deepwork"


def test_a_hook_does_not_wait_for_an_environment(client):
    assert client.run("hook", "Stop", "--client", "claude") == (0, "", "")
    assert client.calls == []
    client.run("serve")
    assert client.run("hook", "Stop") == (0, "started hook Stop\n", "")


def test_two_windows_that_start_at_once_make_one_environment(client):
    windows = [client.start("serve") for _ in range(3)]
    assert [window.communicate(timeout=PATIENCE)[0] for window in windows] == ["started serve\n"] * 3
    assert len(client.calls) == 2


def test_a_client_that_waits_no_longer_finds_the_environment_at_its_next_start(client):
    window = client.start("serve")
    while not client.calls:
        time.sleep(0.02)
    window.terminate()
    window.communicate(timeout=PATIENCE)
    assert client.run("serve")[:2] == (0, "started serve\n")
    assert len(client.calls) == 2


def test_the_lock_of_a_killed_maker_is_no_obstacle(client):
    data = client.home / "plugins/data/deepwork-deepwork"
    data.mkdir(parents=True)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    [version] = {
        json.loads((PLUGIN / f"{name}/plugin.json").read_text())["version"]
        for name in (".claude-plugin", ".codex-plugin")
    }
    os.symlink(str(ended.pid), data / f"{version}.lock")
    assert client.run("serve")[:2] == (0, "started serve\n")


def test_what_kept_it_from_being_made_is_told_and_the_next_start_tries_again(client):
    (client.programs / "broken").touch()
    code, out, err = client.run("serve")
    assert (code, out) == (1, "")
    assert "no network" in err
    (client.programs / "broken").unlink()
    assert client.run("serve")[0] == 0


def test_sources_that_are_gone_are_told(client):
    shutil.rmtree(client.sources)
    code, _, err = client.run("serve")
    assert (code, "its sources are not at" in err) == (1, True)
