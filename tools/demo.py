"""A real workflow through a real server, played by a scripted agent: `make demo`.

Everything on the server's side is real: the process, the protocol, the files, the session. What an agent would
think and write, and what a reviewing sub-agent would say, is written down here.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from rich.console import Console
from rich.markup import escape

NOTES = "README.md: a command that counts words\nwords.py: all of the code\n"
FIRST_DRAFT = "# Tour\n\nThis project counts words. The code is in `words.py`.\n"
SECOND_DRAFT = FIRST_DRAFT + "\nTry it: `python words.py README.md`\n"
PID_FILE = "server.pid"
PATHS = "words.py exists\nREADME.md exists\n"


class Transcript:
    """Prints who says what."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def act(self, title: str) -> None:
        self._console.print(f"\n[bold]{title}[/bold]")

    def history(self, project: Path, session_id: str) -> None:
        """Show by the command for people what the gate has kept: the word of a reviewer, or an override."""
        command = [sys.executable, "-m", "deepwork", "gate", "show", session_id, "--path", str(project)]
        kept = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        self._console.print("\n  $ deepwork gate show …", style="bold")
        for line in (line for line in kept if not line.startswith(" ") and "handed back" not in line):
            self._console.print(f"  {escape(line)}")

    def agent(self, text: str) -> None:
        self._say("cyan", "agent  ", text)

    def server(self, text: str, style: str = "green") -> None:
        self._say(style, "server ", text)

    def reviewer(self, text: str, style: str) -> None:
        self._console.print(f"  [magenta]sub-agent[/magenta] [{style}]{escape(text)}[/{style}]")

    def _say(self, style: str, who: str, text: str) -> None:
        lines = [piece for line in text.splitlines() for piece in textwrap.wrap(line, 106, subsequent_indent="  ")]
        for number, line in enumerate(lines):
            self._console.print(f"  [{style}]{who if number == 0 else '       '}[/{style}] {escape(line)}")


class ScriptedAgent:
    """Calls tools and shows what it sends and what comes back, cut to what matters."""

    def __init__(self, client: Client[Any], transcript: Transcript, project: Path) -> None:
        self._client = client
        self._show = transcript
        self._project = project

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        shown = ", ".join(f"{name}={json.dumps(value)}" for name, value in arguments.items() if name != "session_id")
        self._show.agent(f"{tool}({shown})")
        result = await self._client.call_tool(tool, arguments, raise_on_error=False)
        if result.is_error:
            self._show.server(shortened(result.content[0].text), "red")
            return {}
        reply = dict(result.structured_content)
        self._show_reply(reply)
        return reply

    async def start(self, workflow: str) -> str:
        reply = await self.call(
            "start_workflow", job_name="project_tour", workflow_name=workflow, goal="A tour for newcomers"
        )
        return str(reply["begin_step"]["session_id"])

    def write(self, path: str, text: str) -> None:
        file = self._project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        self._show.agent(f"writes {path}")

    def _show_reply(self, reply: dict[str, Any]) -> None:
        if "jobs" in reply:
            for job in reply["jobs"]:
                flows = ", ".join(flow["name"] for flow in job["workflows"])
                self._show.server(f"{job['name']}: {job['summary']}  [{flows}]")
            return
        status = reply.get("status", "started")
        if status == "needs_work":
            self._show.server(f"needs_work: {shortened(reply['feedback'].split(' Spawn')[0])}", "yellow")
        elif status == "workflow_complete":
            self._show.server(f"workflow_complete: {reply['summary']} {reply['all_outputs']}")
            for notice in reply.get("notices", []):
                self._show.server(f"  {re.sub(r'session_id=.*, ', '', notice)}")
        else:
            begin = reply["begin_step"]
            wanted = ", ".join(output["name"] for output in begin["step_expected_outputs"])
            first_line = begin["step_instructions"].splitlines()[0].lstrip("# ")
            self._show.server(f"{status}: step {begin['step_id']!r}: {first_line}. Outputs: {wanted}")
        self._show.server(
            "stack: " + (" > ".join(f"{one['workflow']}@{one['step']}" for one in reply["stack"]) or "empty")
        )


async def play(project: Path, transcript: Transcript) -> None:
    """Let the agent work through the sample job, with a crash in the middle."""
    async with connected(project, transcript) as agent:
        transcript.act("1. Discover and start")
        await agent.call("get_workflows")
        tour = await agent.start("write_tour")

        transcript.act("2. A step is done when its outputs are there, not when the agent says so")
        await agent.call("finished_step", outputs={"notes": "tour/notes.md"}, session_id=tour, step_id="survey")
        agent.write("tour/notes.md", NOTES)
        await agent.call("finished_step", outputs={"notes": "tour/notes.md"}, session_id=tour, step_id="survey")

        transcript.act("3. The server is killed, and the agent has forgotten everything")
        os.kill(int((project / PID_FILE).read_text()), signal.SIGKILL)
        transcript.server("killed (SIGKILL)", "red")
    async with connected(project, transcript) as agent:
        await agent.call("finished_step", outputs={})
        await agent.call("finished_step", outputs={}, session_id=tour, step_id="?")
        transcript.agent("reads where it was, and goes on")

        transcript.act("4. The quality gate holds the step until its review has passed")
        agent.write("TOUR.md", FIRST_DRAFT)
        await agent.call("finished_step", outputs={"tour": "TOUR.md"}, session_id=tour, step_id="write")
        show_criteria(project, transcript)
        transcript.reviewer("Complete FAILED: it does not say how to try it.   overall FAILED", "red")
        agent.write("TOUR.md", SECOND_DRAFT)

        transcript.act("5. A workflow inside a workflow")
        check = await agent.start("check_paths")
        agent.write("tour/paths.md", PATHS)
        await agent.call("finished_step", outputs={"report": "tour/paths.md"}, session_id=check, step_id="check")

        transcript.act("6. Done")
        transcript.reviewer("Complete PASSED. Short PASSED. True PASSED.   overall PASSED", "green")
        passed = {"quality_review_override_reason": "All criteria passed"}
        await agent.call("finished_step", outputs={"tour": "TOUR.md"}, session_id=tour, step_id="write", **passed)
        transcript.history(project, tour)


@asynccontextmanager
async def connected(project: Path, transcript: Transcript) -> AsyncIterator[ScriptedAgent]:
    """Start a server process of its own, as an agent's client does, and connect to it."""
    start = f"import os; open({PID_FILE!r}, 'w').write(str(os.getpid())); from deepwork.cli.main import run; run()"
    transport = StdioTransport(
        sys.executable,
        ["-P", "-c", start, "serve", "--path", "."],
        cwd=str(project),
        keep_alive=False,
        log_file=project / "server.log",
    )
    async with Client(transport) as client:
        yield ScriptedAgent(client, transcript, project)


def shortened(text: str) -> str:
    """Keep the beginning of a long answer, and its ids short."""
    lines = [line for line in re.sub(r"\b([0-9a-f]{8})[0-9a-f]{24}\b", r"\1…", text).splitlines() if line]
    return "\n".join([*lines[:9], f"… {len(lines) - 9} more lines"] if len(lines) > 9 else lines)


def show_criteria(project: Path, transcript: Transcript) -> None:
    """Show what the server has written for the reviewer."""
    (file,) = (project / ".deepwork" / "tmp").glob("quality_review_*.md")
    transcript.agent("has a sub-agent read that file, which asks:")
    for line in file.read_text().splitlines():
        if line.startswith("- **"):
            transcript.server(f"  {line[2:].replace('**', '')}", "yellow")


def main() -> None:
    """Play it in a folder of its own, then say how to connect a real agent."""
    picture = Path(sys.argv[2]) if sys.argv[1:2] == ["--picture"] else None
    console = Console(
        width=118, highlight=False, no_color=bool(os.environ.get("NO_COLOR")) or None, record=bool(picture)
    )
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        (project / "README.md").write_text("# words\n\nCounts words.\n")
        (project / "words.py").write_text("import sys\nprint(len(open(sys.argv[1]).read().split()))\n")
        subprocess.run(
            [sys.executable, "-m", "deepwork", "init", "--path", folder], check=True, stdout=subprocess.DEVNULL
        )
        asyncio.run(play(project, Transcript(console)))
    if picture:
        # Without the web fonts that rich would have the reader's browser fetch.
        svg = re.sub(r"@font-face {.*?}", "", console.export_svg(title="an agent at work"), flags=re.DOTALL)
        picture.write_text(svg)
        return
    console.print("\n[bold]Connect your own agent[/bold]")
    command = os.path.join(os.path.dirname(sys.executable), "deepwork")
    console.print("  In the folder of your project, prepare it once, and connect your agent:\n")
    console.print(f"    {command} init\n    {command} connect claude")
    console.print(f"\n  Without a name, `{command} connect` lists the clients.")


if __name__ == "__main__":
    main()
