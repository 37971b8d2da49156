"""The entries for clients that pages show: each one's command is started, or its address called, as clients do."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

from deepwork.testing import Agent

ROOT = Path(__file__).parents[2]
PAGE = "docs/how-to/connect-your-agent.md"
CLIENT = re.compile(r"^<!-- client: .*? -->\n```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PARSERS = {"json": json.loads, "toml": tomllib.loads}
SECTIONS = ("mcpServers", "servers", "mcp_servers", "context_servers", "mcp")
PLACEHOLDER = re.compile(r"\$\{\w+\}|\$\{(?:env|input):\w+\}|\{env:\w+\}|\$\w+")
CORE = {"get_workflows", "start_workflow", "finished_step", "abort_workflow"}

pytestmark = pytest.mark.anyio


def entries(name):
    """Yield the entry of every block for a client in a page, with the line where the block begins."""
    text = (ROOT / name).read_text()
    for match in CLIENT.finditer(text):
        content = PARSERS[match[1]](match[2])
        [servers] = [content[section] for section in SECTIONS if section in content]
        assert [*servers] == ["deepwork"]
        yield text.count("\n", 0, match.start()) + 1, servers["deepwork"]


ENTRIES = [pytest.param(entry, id=f"{name}:{line}") for name in ("README.md", PAGE) for line, entry in entries(name)]
STARTED = [parameters for parameters in ENTRIES if "command" in parameters.values[0]]
CALLED = [parameters for parameters in ENTRIES if parameters not in STARTED]


@pytest.mark.slow
@pytest.mark.parametrize("entry", STARTED)
async def test_the_command_of_an_entry_starts_a_server(entry, project):
    command = entry["command"] if isinstance(entry["command"], list) else [entry["command"], *entry["args"]]
    programs = Path(sys.executable).parent
    real = [
        re.sub(r"^/home/ada/\.deepwork-venv/bin", str(programs), part)
        .replace("${workspaceFolder}", str(project.root))
        .replace("/projects/demo", str(project.root))
        for part in command
    ]
    variables = entry.get("env", {}) | entry.get("environment", {})
    path = {"PATH": os.pathsep.join([str(programs), os.environ["PATH"]])}
    transport = StdioTransport(real[0], real[1:], env={**os.environ, **path, **variables}, cwd=str(project.root))
    async with Client(transport) as client:
        assert {tool.name for tool in await client.list_tools()} == CORE
        await Agent(client).start("project_tour", "write_tour")
    assert list(project.state.glob("session_*.json"))


@pytest.mark.slow
async def test_every_address_and_header_is_right_for_a_server_with_the_tokens_that_the_page_makes(
    project, player, serving
):
    await player(PAGE).play()
    file = project.root.parent / "tokens"
    tokens = dict(line.split() for line in file.read_text().splitlines())
    assert len(CALLED) > 3
    with serving("--token-file", str(file)) as address:
        for parameters in CALLED:
            [entry] = parameters.values
            url = urlsplit(entry.get("url") or entry["httpUrl"])
            assert url.netloc == "127.0.0.1:8000", parameters.id
            assert url._replace(netloc=urlsplit(address).netloc).geturl() == address, parameters.id
            headers = entry.get("headers") or {"Authorization": f"Bearer ${entry['bearer_token_env_var']}"}
            sent = {name: PLACEHOLDER.sub(tokens["ada"], value) for name, value in headers.items()}
            async with Client(StreamableHttpTransport(address, headers=sent)) as client:
                assert {tool.name for tool in await client.list_tools()} == CORE, parameters.id


def test_the_page_has_a_section_for_every_client_of_its_table(page):
    clients = {re.sub(r"\[(.*)\]\(.*\)", r"\1", name) for name in page(PAGE).rows("Over stdio")}
    headings = " ".join(page(PAGE).headings)
    assert len(clients) > 10
    assert [client for client in clients if client not in headings] == []
