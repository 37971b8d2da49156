"""Sessions of clients whose hooks call the tool."""

from __future__ import annotations

import json
import uuid

from deepwork.testing import Refused

TOOL = "mcp__deepwork__"


class Window:
    """One session of a client, whose hooks call the tool; every use of a tool is followed by its hook."""

    def __init__(self, agent, session=None, sub_agent=""):
        self.agent = agent
        self.session = session or uuid.uuid4().hex
        self.sub_agent = sub_agent

    async def hook(self, event, **arguments):
        """Call the hook as a client does, and return the JSON of its answer."""
        empty = dict.fromkeys(("tool", "stop_hook_active", "arguments", "response"), "")
        about = {"event": event, "session": self.session, "agent": self.sub_agent, **empty, "paths": ["", ""]}
        result = await self.agent.client.call_tool("hook", {**about, **arguments})
        return json.loads(result.content[0].text)

    async def breathe(self, tool="Bash", event="PostToolUse", **arguments):
        """Use a tool of the client itself, and return what the next request has of us."""
        reply = await self.hook(event, tool=tool, **arguments)
        return reply.get("hookSpecificOutput", {}).get("additionalContext", "")

    async def call(self, tool, **arguments):
        """Call a tool of ours, and return what the next request has of us beside its reply."""
        texts = {"arguments": json.dumps(arguments)}
        try:
            response = await self.agent.call(tool, **arguments)
        except Refused as error:
            return await self.breathe(TOOL + tool, "PostToolUseFailure", error=str(error), **texts), str(error)
        return await self.breathe(TOOL + tool, response=json.dumps(response), **texts), response

    async def start(self):
        news, reply = await self.call("start_workflow", goal="a goal", job_name="demo", workflow_name="main")
        assert news == ""
        return reply["begin_step"]["session_id"]

    def on(self, agent):
        """The same session of the client, connected to another server."""
        return Window(agent, self.session, self.sub_agent)

    def of(self, sub_agent):
        """A sub-agent in the same session of the client."""
        return Window(self.agent, self.session, sub_agent)
