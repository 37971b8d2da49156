"""A project in a folder: write jobs into it, serve it, and talk to the server as an agent does."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml
from fastmcp import Client, FastMCP
from fastmcp.client.transports import StdioTransport

from deepwork.loading.discovery import Candidate, installed
from deepwork.loading.manager import PluginManager
from deepwork.project.config import load_config, resolve_root
from deepwork.project.offers import list_offers
from deepwork.project.project import Project, load_plugins
from deepwork.project.trust import TrustRequest
from deepwork.server import create_server

Mapped = dict[str, Any]


class Refused(Exception):
    """A tool call that was answered with an error, whose text the agent reads."""


def output(kind: str = "file", *, required: bool = True) -> Mapped:
    """Make an output of a step."""
    return {"type": kind, "description": f"A {kind}", "required": required}


def review(run_each: str = "step", **more: Any) -> Mapped:
    """Make a review with one criterion."""
    return {"run_each": run_each, "quality_criteria": {"Good": "Is it good?"}, **more}


def step(step_id: str, **more: Any) -> Mapped:
    """Make a step with one output `<id>.md` and no review; `more` replaces any of its keys."""
    return {
        "id": step_id,
        "name": step_id.title(),
        "description": f"Do {step_id}",
        "instructions_file": f"steps/{step_id}.md",
        "outputs": {f"{step_id}.md": output()},
        "reviews": [],
        **more,
    }


class Agent:
    """A client connection, seen as an agent sees it."""

    def __init__(self, client: Client[Any]) -> None:
        self.client = client

    async def call(self, tool: str, **arguments: Any) -> Mapped:
        """Call a tool and give its structured content.

        Raises:
            Refused: The tool answered with an error.
        """
        result = await self.client.call_tool(tool, arguments, raise_on_error=False)
        if result.is_error:
            raise Refused(getattr(result.content[0], "text", ""))
        return dict(result.structured_content or {})

    async def text(self, tool: str, **arguments: Any) -> str:
        """Call a tool and give its text, as of one with `output="text"` or `"json"`.

        Raises:
            Refused: The tool answered with an error.
        """
        result = await self.client.call_tool(tool, arguments, raise_on_error=False)
        text = "\n".join(getattr(part, "text", "") for part in result.content)
        if result.is_error:
            raise Refused(text)
        return text

    async def refused(self, tool: str, **arguments: Any) -> str:
        """Call a tool that has to refuse, and give the error's text."""
        try:
            answer = await self.call(tool, **arguments)
        except Refused as error:
            return str(error)
        raise AssertionError(f"{tool} was to refuse, but answered {answer}")

    async def start(self, job: str = "demo", workflow: str = "main", **more: Any) -> Mapped:
        """Start a workflow and give `begin_step`."""
        reply = await self.call("start_workflow", goal="a goal", job_name=job, workflow_name=workflow, **more)
        return dict(reply["begin_step"])

    async def where(self, **more: Any) -> str:
        """Ask where a session is, and give what the agent is told."""
        reply = await self.call("finished_step", outputs={}, step_id="?", **more)
        return str(reply.get("feedback") or reply["summary"])

    async def finish(self, outputs: Mapping[str, Any], **more: Any) -> Mapped:
        """Call `finished_step`."""
        return await self.call("finished_step", outputs=dict(outputs), **more)


class DeepworkProject:
    """A project in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def jobs(self) -> Path:
        """The folder of the project's jobs."""
        return self.root / ".deepwork" / "jobs"

    @property
    def state(self) -> Path:
        """The folder of sessions and review files."""
        return self.root / ".deepwork" / "tmp"

    def write(self, path: str | Path, text: str | bytes = "content\n") -> Path:
        """Write a file, with its folders."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    def write_job(
        self,
        name: str = "demo",
        steps: Sequence[Mapped] = (),
        workflows: Mapping[str, Sequence[str | list[str]]] | None = None,
        *,
        folder: Path | None = None,
        **more: Any,
    ) -> Path:
        """Write a job with the instruction files of its steps, and give its folder.

        Steps are `a` and `b` if none are given, and the one workflow is `main` with all of them.
        """
        chosen = list(steps) or [step("a"), step("b")]
        flows = {"main": [job_step["id"] for job_step in chosen]} if workflows is None else workflows
        job_dir = (folder or self.jobs) / name
        content = {
            "name": name,
            "version": "1.0.0",
            "summary": f"Job {name}",
            "common_job_info_provided_to_all_steps_at_runtime": f"About {name}",
            "steps": chosen,
            "workflows": [{"name": flow, "summary": f"Does {flow}", "steps": list(ids)} for flow, ids in flows.items()],
            **more,
        }
        for job_step in chosen:
            self.write(job_dir / job_step["instructions_file"], f"Instructions for {job_step['id']}\n")
        self.write(job_dir / "job.yml", yaml.safe_dump(content, sort_keys=False))
        return job_dir

    def trust(
        self, *, extra_plugins: Mapping[str, object] | None = None, plugins: PluginManager | None = None
    ) -> list[str]:
        """Trust all that the project asks for, as `deepwork trust --yes` does, and give the labels of it."""
        project = Project(self.root, plugins=plugins or self._plugins(extra_plugins))
        # In a thread, because plugins may start an event loop of their own, and tests may be in one.
        with ThreadPoolExecutor(1) as threads:
            requests = threads.submit(_trust_requests, project).result()
        project.trust.grant(requests)
        return sorted(request.label for request in requests)

    def server(self, *, extra_plugins: Mapping[str, object] | None = None, **options: Any) -> FastMCP[Any]:
        """Make a server in this process.

        Args:
            extra_plugins: Plugins by name that need not be installed: objects or modules with hooks.
            **options: The arguments of `create_server`.
        """
        if extra_plugins is not None:
            options["plugins"] = self._plugins(extra_plugins)
        return create_server(self.root, **options)

    def _plugins(self, extra_plugins: Mapping[str, object] | None) -> PluginManager:
        candidates = [_candidate(name, plugin) for name, plugin in (extra_plugins or {}).items()]
        config = load_config(resolve_root(self.root), os.environ).config
        return load_plugins(config, os.environ, candidates=[*installed(), *candidates])

    @asynccontextmanager
    async def agent(
        self, server: FastMCP[Any] | None = None, *, mode: str = "auto", **options: Any
    ) -> AsyncIterator[Agent]:
        """Connect to a server in this process; `mode="legacy"` speaks the older protocol era."""
        async with Client(server or self.server(**options), mode=mode) as client:
            yield Agent(client)

    @asynccontextmanager
    async def stdio_agent(
        self, *arguments: str, mode: str = "auto", env: Mapping[str, str] | None = None
    ) -> AsyncIterator[Agent]:
        """Start `deepwork serve` as a process and connect to it over stdio."""
        transport = StdioTransport(
            sys.executable,
            ["-m", "deepwork", "serve", "--path", str(self.root), *arguments],
            env={**os.environ, **(env or {})},
            keep_alive=False,
            log_file=self.root / "server.log",
        )
        async with Client(transport, mode=mode) as client:
            yield Agent(client)


def _trust_requests(project: Project) -> list[TrustRequest]:
    list_offers(project)
    return project.trust_requests()


def _candidate(name: str, plugin: object) -> Candidate:
    module = getattr(plugin, "__module__", getattr(plugin, "__name__", ""))
    return Candidate(name, f"test-{name}", "0", lambda: plugin, module=str(module))
