"""Real repositories, made by git itself, and agents that talk to real servers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from deepwork.testing import Agent, DeepworkProject, Refused


class ReviewAgent(Agent):
    """An agent that reads the texts of the review tools."""

    async def text(self, tool, **arguments):
        result = await self.client.call_tool(tool, arguments, raise_on_error=False)
        if result.is_error:
            raise Refused(result.content[0].text)
        return result.content[0].text

    async def instructions(self, **arguments):
        return await self.text("get_review_instructions", **arguments)

    async def configured(self, **arguments):
        return json.loads(await self.text("get_configured_reviews", **arguments))

    async def pass_all(self, **arguments):
        """Mark every needed review as passed."""
        answer = await self.instructions(**arguments)
        for review_id in ids(answer):
            await self.text("mark_review_as_passed", review_id=review_id)
        return answer


def ids(answer):
    return re.findall(r"review_instructions/(.+)\.md", answer)


class Repo(DeepworkProject):
    """A project in a git repository."""

    def git(self, *arguments, cwd=None, **options):
        command = ["git", "-c", "protocol.file.allow=always", *arguments]
        completed = subprocess.run(command, cwd=cwd or self.root, capture_output=True, check=False, **options)
        assert completed.returncode == 0, completed.stderr.decode()
        return completed.stdout.decode()

    def init(self):
        self.root.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")
        return self

    def commit(self, message="work"):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)

    def rule(self, name="rule", folder=".", *, strategy="individual", include=("**/*",), exclude=(), **more):
        """Add a rule to the `.deepreview` file of a folder; `match_` and other keys go where they belong."""
        file = self.root / folder / ".deepreview"
        rules = yaml.safe_load(file.read_text()) if file.exists() else {}
        match = {"include": list(include), **({"exclude": list(exclude)} if exclude else {})}
        if "deletions" in more:
            match["deletions"] = more.pop("deletions")
        rules[name] = {
            "description": more.pop("description", f"About {name}"),
            "match": match,
            "review": {"strategy": strategy, "instructions": more.pop("instructions", f"Look at {name}."), **more},
        }
        return self.write(Path(folder) / ".deepreview", yaml.safe_dump(rules, sort_keys=False))

    @asynccontextmanager
    async def reviewer(self, **options):
        async with self.agent(**options) as agent:
            yield ReviewAgent(agent.client)

    async def ask(self, **arguments):
        """Ask a new server for instructions."""
        async with self.reviewer() as agent:
            return await agent.instructions(**arguments)

    async def refusal(self, **arguments):
        """Ask a new server for instructions that it has to refuse."""
        with pytest.raises(Refused) as error:
            await self.ask(**arguments)
        return str(error.value)

    def run(self, *arguments, stdin="", env=None, cwd=None):
        """Run the command `deepwork`."""
        command = [sys.executable, "-m", "deepwork", *arguments]
        environment = {**os.environ, "COLUMNS": "100", **(env or {})}
        return subprocess.run(
            command, cwd=cwd or self.root, input=stdin, capture_output=True, text=True, env=environment, timeout=240
        )


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch, tmp_path_factory):
    """Hide the configuration of the user who runs the tests, for DeepWork and for git."""
    for name in list(os.environ):
        if name.startswith(("DEEPWORK_", "FASTMCP_", "GIT_")):
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    (home / ".gitconfig").write_text("[user]\n\tname = Somebody\n\temail = somebody@example.org\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))


@pytest.fixture
def repo(tmp_path):
    """A repository with one commit on main, and a branch `work` that is checked out."""
    repo = Repo(tmp_path / "project").init()
    repo.write("README.md")
    repo.commit()
    repo.git("checkout", "-q", "-b", "work")
    return repo


@pytest.fixture
def repo_at():
    """Return the class, for tests that make repositories in other folders."""
    return Repo


@pytest.fixture
def reviewed():
    """Return the files to review, from the instruction files of a reply: once for each review, as they are written."""

    def reviewed(root, answer):
        paths = []
        for review_id in ids(answer):
            text = (root / ".deepwork" / "tmp" / "review_instructions" / f"{review_id}.md").read_text()
            files = re.search(r"## Files to Review\n\n(.*?)(\n\n|\Z)", text, re.DOTALL)
            paths += re.findall(r"^- @?(.*)$", files[1], re.MULTILINE) if files else []
        return sorted(paths)

    return reviewed


@pytest.fixture
def review_ids():
    return ids
