"""What the pages show is what happens, and what they link to is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from deepwork.api import Job, parse_job
from deepwork.project.config import load_config

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    if "specs" not in path.parts
)
PLAYED = [
    pytest.param(name, marks=[pytest.mark.slow] if re.search("^(python -m )?pytest", text, re.MULTILINE) else [])
    for name, text in ((name, (ROOT / name).read_text()) for name in PAGES)
    if re.search("^<!-- (run|call)", text, re.MULTILINE)
]
HELP = "docs/reference/cli.md"
KINDS = {
    "file": "any",
    "given": "any",
    "run": "bash",
    "installs": "bash",
    "output": "text",
    "call": "json",
    "reply": "json",
    "refusal": "text",
    "job": "yaml",
    "config": "yaml",
    "help": "text",
    "message": "text",
    "example": "python",
    "signature": "python",
    "client": "any",
    "plugin": "any",
    "sketch": "any",
    "entry": "any",
    "hooks": "json",
    "answer": "json",
    "gate": "yaml",
}
ROOMS = "|".join(path.name for path in (ROOT / "src" / "deepwork").iterdir() if path.is_dir())
SOURCE = re.compile(rf"(?<![\w/])(?:src/deepwork/)?((?:{ROOMS})/(?:\w+/)*\w+\.py)\b")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")

pytestmark = pytest.mark.anyio


def pages_with(pattern: str | re.Pattern[str]) -> list[str]:
    """Return the pages that have something to test: with the others a test could not fail."""
    names = [name for name in PAGES if re.search(pattern, (ROOT / name).read_text())]
    assert names, pattern
    return names


@pytest.mark.slow
@pytest.mark.parametrize("name", PLAYED)
async def test_what_a_page_shows_is_what_happens(name, player):
    await player(name).play()


@pytest.mark.parametrize("name", [name for name in PAGES if name.startswith("docs/")])
def test_every_block_of_a_page_says_what_it_is(name, page):
    for block in page(name).blocks():
        if block.kind:
            assert KINDS.get(block.kind) in (block.language, "any"), f"{name}:{block.line} is a {block.kind}?"
        else:
            # Only what readers do once, on the way to where the page begins.
            assert block.text == ". ~/.deepwork-venv/bin/activate\n", f"{name}:{block.line} has no comment before it"


@pytest.mark.parametrize("name", pages_with(LINK))
def test_every_link_of_a_page_leads_somewhere(name, page):
    for target in LINK.findall(page(name).prose):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / name).parent / path if path else ROOT / name
        assert file.exists(), f"{name} links to {target}"
        if anchor:
            assert anchor in page(file.resolve().relative_to(ROOT)).anchors, f"{name} links to {target}"


def test_the_index_links_to_every_page(page):
    index = page("docs/README.md")
    listed = {str((index.path.parent / target).resolve().relative_to(ROOT)) for target in LINK.findall(index.prose)}
    assert {name for name in PAGES if name.startswith("docs/")} <= listed | {"docs/README.md"}


@pytest.mark.parametrize("name", pages_with(SOURCE))
def test_every_source_file_that_a_page_names_exists(name, page):
    for path in SOURCE.findall(page(name).text):
        assert (ROOT / "src" / "deepwork" / path).is_file(), f"{name} names {path}"


@pytest.mark.parametrize("name", pages_with("<!-- job"))
def test_the_jobs_that_a_page_shows_have_no_errors(name, page, project):
    for number, block in enumerate(page(name).blocks("job")):
        folder = project.write(f"{number}/job.yml", block.text).parent
        job = parse_job(folder)
        assert isinstance(job, Job), f"{name}:{block.line}\n{job}"


@pytest.mark.parametrize("name", pages_with("<!-- config"))
def test_the_configurations_that_a_page_shows_have_no_errors(name, page, project):
    for block in page(name).blocks("config"):
        project.write(".deepwork/config.yml", block.text)
        assert load_config(project.root, {})


@pytest.mark.parametrize("command", re.findall("^<!-- help: (.+) -->$", (ROOT / HELP).read_text(), re.MULTILINE))
def test_a_help_text_is_what_the_command_prints(command, page, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    arguments = [sys.executable, "-m", *command.split(), "--help"]
    printed = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
    assert printed == next(block.text for block in page(HELP).blocks("help") if block.about == command)


def test_every_test_that_the_security_model_names_exists(page):
    """Each promise of the page names what shows it, so a test that goes takes the promise with it."""
    text = (ROOT / "docs/explanation/security-model.md").read_text()
    sources = [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "plugins").rglob("tests/test_*.py")]
    functions = set(re.findall(r"^(?:async )?def (test_\w+)", "\n".join(map(Path.read_text, sources)), re.MULTILINE))
    names = re.findall(r"`([\w/]*test_\w+(?:\.py)?)`", text)
    files = [name for name in names if name.endswith(".py")]
    assert [name for name in files if not ((ROOT / name).exists() or (ROOT / "tests/security" / name).exists())] == []
    assert [name for name in names if name not in files and name not in functions] == []
    assert len(names) > 30


@pytest.mark.parametrize(
    "section", ["Who may do what", "A hostile repository", "A dishonest agent or reviewer", "What is on the disk"]
)
def test_each_row_of_the_security_model_names_what_shows_it_or_says_that_it_promises_nothing(page, section):
    cells = [row[-1] for row in page("docs/explanation/security-model.md").lines(section)]
    assert cells
    assert [
        cell for cell in cells if not ("test_" in cell or "](#" in cell or cell in ("no promise", "Shown by", "---"))
    ] == []


EXPLAINING = (
    "`deepwork` reads files that others wrote",
    "With the plugin `deepwork-review` there is more",
    "A server on 127.0.0.1 cannot be reached from the network",
    "- Every page that your browser shows",
    "- Every user of your machine may open a connection",
    "[SECURITY.md]",
)


def test_each_paragraph_of_the_security_model_names_what_shows_it_or_says_that_it_promises_nothing():
    text = (ROOT / "docs/explanation/security-model.md").read_text()
    paragraphs = [part.strip() for part in re.split(r"\n\n|\n(?=- |#)", text)]
    prose = [part for part in paragraphs if part and not part.startswith(("#", "|", *EXPLAINING))]
    assert [part for part in prose if not re.search(r"`[\w/]*test|no promise", part)] == []
