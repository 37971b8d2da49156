"""How Sphinx makes a site of the Markdown pages, which stay as they are: `make docs`. Its source is the repository."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]
_PROJECT = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = _PROJECT["name"]
release = _PROJECT["version"]
extensions = ["myst_parser"]
root_doc = "docs/README"
include_patterns = ["docs/**", "*.md", "plugins/deepwork_*/*.md"]
nitpicky = True
html_theme = "furo"
html_title = f"{project} {release}"
html_show_copyright = False
html_static_path = ["static"]
html_css_files = ["site.css"]
myst_heading_anchors = 4
suppress_warnings = [
    "misc.highlighting_failure",  # "…" stands for an omission
    "myst.header",  # the specifications are as they were given
    "toc.not_included",  # pages of the repository that others point to
]
_GROUP = re.compile(r"^([A-Z][^\n]*):\n\n((?:[- ][^\n]*\n)+)", re.MULTILINE)
_PAGE = re.compile(r"\]\((?!\w+:)([^)#]+)\.md(?:#[^)]*)?\)")


def _add_navigation(_app: Any, name: str, source: list[str]) -> None:
    """Make the navigation of the lists on the first page."""
    if name == root_doc:
        for caption, pages in _GROUP.findall(source[0]):
            names = "\n".join(_PAGE.findall(pages))
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{names}\n```\n"


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _add_navigation)
