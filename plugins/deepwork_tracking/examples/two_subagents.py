"""An orchestrator and two subagents record a small piece of work: `python …/examples/two_subagents.py`.

Each of the three talks to a server process of its own, as agents do. All of it happens in a temporary repository, and
each subagent works in a git worktree. At the end the script shows what a person sees.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import anyio
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

DEEPWORK = [sys.executable, "-m", "deepwork"]


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Example", "-c", "user.email=example@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def server_of(project: Path) -> Client[Any]:
    """Start `deepwork serve` for one agent."""
    arguments = [*DEEPWORK[1:], "serve", "--tools", "tracking", "--path", str(project)]
    return Client(StdioTransport(DEEPWORK[0], arguments, env=dict(os.environ), log_file=project.parent / "server.log"))


async def call(agent: Client[Any], tool: str, **arguments: Any) -> dict[str, Any]:
    result = await agent.call_tool(tool, arguments)
    print(f"  {tool}({', '.join(f'{name}=…' for name in arguments)})")
    return dict(result.structured_content or {})


async def subagent(project: Path, workflow_id: str, phase_id: str, name: str, file: str) -> None:
    """Do what the subagent's protocol says, in a worktree of its own."""
    tree = project.parent / name
    git(project, "worktree", "add", "-q", "-b", name, str(tree))
    async with server_of(project) as agent:
        task = await call(
            agent,
            "start_task",
            workflow_id=workflow_id,
            phase_id=phase_id,
            caller_type="subagent",
            agent_name=name,
            name=f"Write {file}",
            goal=f"{file} exists",
            areas=[file],
            path=str(tree),
        )
        (tree / file).write_text("done\n")
        git(tree, "add", "-A")
        git(tree, "commit", "-q", "-m", f"Write {file}")
        (tree / "notes.txt").write_text("not committed, and outside of the task's areas\n")
        log = {"task_id": task["task_id"]}
        await call(agent, "log_milestone", **log, message=f"{file} is written", progress=100)
        if name == "ui":
            await call(
                agent,
                "log_issue",
                **log,
                type="unclear_requirement",
                description="Which colour?",
                resolution="Took blue for now",
                requires_human_review=True,
            )
        outcome = {"summary": f"{file} is there"}
        completion = await call(agent, "complete_task", **log, status="success", outcome=outcome)
        print(f"  {name} changed {completion['files_changed']['added']}")


async def orchestrate(project: Path) -> str:
    """Do what the orchestrator's protocol says, and give the id of the workflow."""
    async with server_of(project) as agent:
        workflow = await call(agent, "start_workflow", name="Say hello", objective="api.md and ui.md exist")
        workflow_id = workflow["workflow_id"]
        phase = await call(agent, "start_phase", workflow_id=workflow_id, number=1, name="Write", is_parallel=True)
        async with anyio.create_task_group() as subagents:
            for name in ("api", "ui"):
                subagents.start_soon(subagent, project, workflow_id, phase["phase_id"], name, f"{name}.md")
        context = await call(agent, "get_context", workflow_id=workflow_id, include=["tasks", "blockers"])
        print(f"  {context['tasks_count']} tasks, {context['blockers_count']} blocker(s)")
        await call(agent, "complete_phase", phase_id=phase["phase_id"], status="completed")
        await call(agent, "complete_workflow", workflow_id=workflow_id, status="completed", summary="Both are there")
    return str(workflow_id)


def show(project: Path, *arguments: str) -> None:
    print(f"\n$ deepwork track {' '.join(arguments)}", flush=True)
    subprocess.run([*DEEPWORK, "track", *arguments, "--path", str(project)], check=True)


def main() -> None:
    """Record the work, and show it."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(os.path.realpath(folder)) / "project"
        project.mkdir()
        git(project, "init", "-q", "-b", "main")
        git(project, "commit", "-q", "--allow-empty", "-m", "Begin")
        print("What the agents call:")
        workflow_id = anyio.run(orchestrate, project)
        show(project, "list")
        show(project, "show", workflow_id)
        show(project, "blockers")
        show(project, "export", workflow_id)


if __name__ == "__main__":
    main()
