"""The official Python client and FastMCP's, in both eras, over stdio and HTTP."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager

import fastmcp
import mcp
import pytest
from fastmcp.client.transports import StdioTransport
from mcp import StdioServerParameters

from deepwork.testing import Agent, Refused

pytestmark = pytest.mark.anyio

ERAS = {"legacy": "2025-11-25", "auto": "2026-07-28"}


class FastMCPAgent(Agent):
    """An agent that speaks through FastMCP's client."""

    async def tools(self):
        return [tool.name for tool in await self.client.list_tools()]


class OfficialAgent(Agent):
    """An agent that speaks through the official client."""

    async def tools(self):
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, tool, **arguments):
        result = await self.client.call_tool(tool, arguments)
        if result.is_error:
            raise Refused(result.content[0].text)
        return result.structured_content


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("era", ERAS)
async def test_fastmcps_client_makes_the_journey(travel, tmp_path, transport, era):
    @asynccontextmanager
    async def connect(target):
        if transport == "stdio":
            program, *arguments = target
            log = tmp_path / "server.log"
            target = StdioTransport(program, arguments, env=dict(os.environ), keep_alive=False, log_file=log)
        async with fastmcp.Client(target, mode=era) as client:
            assert client.protocol_version == ERAS[era]
            yield FastMCPAgent(client)

    await travel(transport, connect)


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("era", ERAS)
async def test_the_official_client_makes_the_journey(travel, transport, era):
    @asynccontextmanager
    async def connect(target):
        if transport == "stdio":
            program, *arguments = target
            target = StdioServerParameters(command=program, args=arguments, env=dict(os.environ))
        async with mcp.Client(target, mode=era) as client:
            assert client.protocol_version == ERAS[era]
            yield OfficialAgent(client)

    await travel(transport, connect)
