"""What `deepwork doctor` says of the environment that runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from deepwork.cli import environment


def told(invoke):
    report = json.loads(invoke("doctor", "--json").out)
    return report["install"], [item["text"] for item in report["findings"] if item["check"] == "environment"]


def test_it_says_how_deepwork_was_installed_and_what_brings_a_newer_one(invoke):
    install, texts = told(invoke)
    assert set(install) == {"route", "upgrade"}
    assert f"installed by: {install['route']}; upgrade by: {install['upgrade']}" in texts


@pytest.fixture(params=["environment", "Umgebung für Jörg"])
def server(request, project, tmp_path, monkeypatch):
    """A server of this environment, under a name without and with spaces, that was started just now."""
    prefix = tmp_path / request.param
    prefix.symlink_to(sys.prefix)
    monkeypatch.setattr(sys, "prefix", str(prefix))
    command = [prefix / "bin/python", prefix / "bin/deepwork", "serve", "--path", str(project.root)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    yield process
    process.kill()
    process.communicate()


@pytest.mark.skipif(not os.path.exists("/bin/ps") and not os.path.exists("/usr/bin/ps"), reason="ps is missing")
def test_servers_from_before_an_upgrade_are_named_and_newer_ones_are_not(invoke, server, monkeypatch):
    monkeypatch.setattr(environment, "_installed_at", lambda: time.time() - 3600)
    assert str(server.pid) not in " ".join(told(invoke)[1])
    monkeypatch.setattr(environment, "_installed_at", lambda: time.time() + 3600)
    [warning] = [text for text in told(invoke)[1] if "before the last upgrade" in text]
    assert str(server.pid) in warning


@pytest.mark.skipif(not os.path.exists("/bin/ps") and not os.path.exists("/usr/bin/ps"), reason="ps is missing")
def test_on_a_machine_that_is_too_busy_for_ps_no_server_is_named_and_the_rest_is_said(invoke, monkeypatch):
    monkeypatch.setattr(environment, "_SECONDS", 0)
    assert any(text.startswith("installed by") for text in told(invoke)[1])
