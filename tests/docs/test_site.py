"""`make docs` makes a site with a search of all pages, and fails at a link that leads nowhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def build(source, out):
    """Run the command of the Makefile on a folder."""
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-n",
        "-c",
        ROOT / "tools" / "site",
        source,
        out,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)


@pytest.fixture
def pages(tmp_path):
    """A small repository: a first page with a list, and a second page."""
    source = tmp_path / "source"
    (source / "docs").mkdir(parents=True)
    (source / "docs" / "README.md").write_text("# All\n\nLearn it:\n\n- [Second](second.md#there)\n")
    (source / "docs" / "second.md").write_text("# Second\n\n## There\n\nRutabaga.\n")
    return source


def test_all_pages_of_this_repository_become_a_site_without_a_complaint(tmp_path):
    process = build(ROOT, tmp_path / "site")
    assert (process.returncode, process.stderr) == (0, "")
    first = (tmp_path / "site" / "docs" / "README.html").read_text()
    assert 'href="tutorial/first-workflow.html"' in first
    assert 'href="../_static/site.css' in first
    assert (tmp_path / "site" / "docs" / "reference" / "tools.html").exists()


def test_the_lists_of_the_first_page_are_the_navigation_and_every_word_is_found(pages, tmp_path):
    process = build(pages, tmp_path / "site")
    assert (process.returncode, process.stderr) == (0, "")
    assert '<span class="caption-text">Learn it</span>' in (tmp_path / "site" / "docs" / "second.html").read_text()
    assert "rutabaga" in (tmp_path / "site" / "searchindex.js").read_text()


@pytest.mark.parametrize("link", ["gone.md", "second.md#nowhere", "../GONE.md"])
def test_a_link_that_leads_nowhere_fails(pages, tmp_path, link):
    (pages / "docs" / "second.md").write_text(f"# Second\n\n## There\n\n[x]({link})\n")
    process = build(pages, tmp_path / "site")
    assert process.returncode == 1
    assert "second.md" in process.stderr
