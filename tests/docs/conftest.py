"""Reads the pages of the documentation and does what they say. `docs/README.md` explains the comments."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from deepwork.loading.discovery import installed
from deepwork.testing import Agent, DeepworkProject, Refused

ROOT = Path(__file__).parent.parent.parent
SHOWN_ROOT = "/projects/demo"  # how pages name the project's folder
BLOCK = re.compile(r"(?:^<!-- (\w+)(?:: ([^\n]*))? -->\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)

# What differs from run to run. An id on a page stands for one real id; times and ages stand for any.
VARYING = re.compile(
    r"(?P<id>(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f]))|(?P<hash>(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f]))|(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00)"
    r"|(?P<date>(?<=-)20\d{6}\b)|(?P<age>\b\d+ (?:s|min|h|d)(?= ago))|(?P<any>…)"
)
PATTERNS = {
    "hash": r"[0-9a-f]{64}",
    "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00",
    "date": r"20\d{6}",
    "age": r"\d+ (?:s|min|h|d)",
    "any": r"(?s:.*?)",
}


@dataclass(frozen=True)
class Block:
    """A fenced block, and what the comment before it says it is."""

    kind: str
    about: str
    language: str
    text: str
    line: int


@dataclass
class Page:
    """A page of the documentation."""

    path: Path

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def prose(self) -> str:
        """The text without its blocks, line numbers kept."""
        return BLOCK.sub(lambda match: "\n" * match[0].count("\n"), self.text)

    @property
    def headings(self) -> list[str]:
        return [match[2].replace("`", "") for match in HEADING.finditer(self.prose)]

    def blocks(self, *kinds: str) -> Iterator[Block]:
        text = self.text
        for match in BLOCK.finditer(text):
            block = Block(match[1] or "", match[2] or "", match[3], match[4], text.count("\n", 0, match.start()) + 1)
            if not kinds or block.kind in kinds:
                yield block

    def section(self, title: str) -> str:
        """Return the text below a heading, up to the next heading of any level."""
        matches = list(HEADING.finditer(self.prose))
        for match, following in zip(matches, [*matches[1:], None], strict=True):
            if match[2].replace("`", "") == title:
                return self.prose[match.end() : following.start() if following else None]
        raise AssertionError(f"{self.path.name} has no heading {title!r}; it has {self.headings}")

    @property
    def anchors(self) -> set[str]:
        """The headings as links name them, by the rule of GitHub."""
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in self.headings}

    def lines(self, title: str) -> list[list[str]]:
        """Return the cells of the table below a heading, without its head."""
        rows = [line for line in self.section(title).splitlines() if line.startswith("|")]
        return [[cell.strip() for cell in row[1:-1].split("|")] for row in rows[2:]]

    def rows(self, title: str) -> dict[str, list[str]]:
        """Return the table below a heading: the name in its first cell, and the other cells."""
        return {first.strip("`"): cells for first, *cells in self.lines(title)}


@dataclass
class Player:
    """Does what a page says, from top to bottom, in one project, and compares what the page shows."""

    project: DeepworkProject
    page: Page
    ids: dict[str, str] = field(default_factory=dict)
    installed: dict[str, str] = field(default_factory=dict)
    plugin_folders: list[Path] = field(default_factory=list)
    output: str = ""
    agent: Agent | None = None

    async def play(self) -> None:
        for block in self.page.blocks("given"):
            self.project.write(block.about, block.text)
        async with AsyncExitStack() as connections:
            for block in self.page.blocks():
                if block.kind == "file":
                    self.project.write(block.about, block.text)
                elif block.kind == "run":
                    await self._run(block)
                elif block.kind == "installs":
                    self._install(self.project.root / block.about)
                elif block.kind == "call":
                    await self._call(block, connections)
                elif block.kind in ("output", "reply", "refusal"):
                    self.compare(block)
        for folder in self.plugin_folders:
            await self._lint(folder)

    async def _lint(self, folder: Path) -> None:
        """Hold what a page has authors write to the settings of the template that it starts from."""
        for arguments in (["check", "--quiet"], ["format", "--diff", "--quiet"]):
            command = [sys.executable, "-m", "ruff", *arguments, "--no-cache", "."]
            process = await anyio.run_process(command, cwd=folder, stderr=subprocess.STDOUT, check=False)
            assert process.returncode == 0, f"{self.page.path.name}\n{process.stdout.decode()}"

    def _install(self, folder: Path) -> None:
        """Do by hand what pip does with `--editable`, for the tests have no network and share one environment."""
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        # Beside the project: what lies in it may not stand before our own packages on the import path.
        packages = self.project.root.with_name("site-packages")
        about = packages / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
        self.project.write(packages / "sitecustomize.py", f"import sys\n\nsys.path.append({str(folder / 'src')!r})\n")
        self.plugin_folders.append(folder)
        points = "".join(f"{name} = {module}\n" for name, module in project["entry-points"]["deepwork"].items())
        self.project.write(about / "METADATA", f"Name: {project['name']}\nVersion: {project['version']}\n")
        self.project.write(about / "entry_points.txt", f"[deepwork]\n{points}")
        self.installed = {
            "PYTHONPATH": str(packages),
            "PYTEST_ADDOPTS": "-p no:xdist -p no:cacheprovider",
            "PIP_NO_BUILD_ISOLATION": "0",  # pip reads this as "no isolation"
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }

    async def _run(self, block: Block) -> None:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        process = await anyio.run_process(
            ["bash", "-euc", self._real(block.text)],
            cwd=self.project.root,
            env={**os.environ, "PATH": path, **self.installed},
            stderr=subprocess.STDOUT,
            check=False,
        )
        self.output = process.stdout.decode()
        expected = int(block.about.removeprefix("exits ") or 0)
        assert process.returncode == expected, f"{self.page.path.name}:{block.line}\n{self.output}"

    async def _call(self, block: Block, connections: AsyncExitStack) -> None:
        tool, _, when = block.about.partition(", ")
        if when or self.agent is None:
            await connections.aclose()
            self.agent = await connections.enter_async_context(self.project.agent())
        try:
            self.output = json.dumps(await self.agent.call(tool, **json.loads(self._real(block.text))), indent=2) + "\n"
        except Refused as error:
            self.output = f"{error}\n"

    def _real(self, text: str) -> str:
        """Put the ids of this run into what the page says."""
        for example, real in self.ids.items():
            text = text.replace(example, real)
        return text

    def compare(self, block: Block) -> None:
        """Compare what came last with what the page shows."""
        really = self.output.replace(str(self.project.root), SHOWN_ROOT)
        match = re.fullmatch(self._pattern(block.text), really)
        place = f"{self.page.path.relative_to(ROOT)}:{block.line}"
        assert match, f"{place} shows\n\n{block.text}\nbut what really comes is\n\n{really}"
        self.ids |= {name.removeprefix("id_"): value for name, value in match.groupdict().items()}

    def _pattern(self, text: str) -> str:
        """Turn a shown text into a regular expression that contains the ids met before."""
        parts, position, met = [], 0, set()
        for match in VARYING.finditer(text):
            parts.append(re.escape(text[position : match.start()]))
            position = match.end()
            if match.lastgroup != "id":
                parts.append(PATTERNS[match.lastgroup or ""])
            elif match[0] in self.ids:
                parts.append(self.ids[match[0]])
            else:
                parts.append(f"(?P=id_{match[0]})" if match[0] in met else f"(?P<id_{match[0]}>[0-9a-f]{{32}})")
                met.add(match[0])
        return "".join([*parts, re.escape(text[position:])])


@pytest.fixture(autouse=True)
def _core_alone(monkeypatch, nobodys_home):
    """Leave out the plugins and clients of the person who runs the tests: the pages are about the core."""
    monkeypatch.setenv(
        "DEEPWORK_NO_PLUGINS", ",".join(candidate.name for candidate in installed() if not candidate.builtin)
    )


@pytest.fixture
def serving(project):
    """Serve the project over HTTP on a free port: `with serving(*options) as address`."""

    @contextmanager
    def serve(*options):
        command = [sys.executable, "-m", "deepwork", "serve", "--path", str(project.root), "--transport", "http"]
        with subprocess.Popen([*command, "--port", "0", *options], stderr=subprocess.PIPE, text=True) as server:
            try:
                line = server.stderr.readline()
                match = re.search(r"listening on (http://\S+)", line)
                assert match, line
                yield match[1]
            finally:
                server.terminate()
                server.communicate()

    return serve


@pytest.fixture
def page():
    """Return a page by its path from the root of the repository."""
    return lambda name: Page(ROOT / name)


@pytest.fixture
def reference():
    """Return a page of the reference by its name."""
    return lambda name: Page(ROOT / "docs" / "reference" / f"{name}.md")


@pytest.fixture
def player(project):
    """Make what plays or compares a page in the project of this test."""
    return lambda name: Player(project, Page(ROOT / name))
