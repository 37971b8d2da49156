"""The signatures on the pages are those of the code; `make reference` writes them."""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path

import pytest

from deepwork import api

TOOL = Path(__file__).parents[2] / "tools" / "signatures.py"


@pytest.fixture(scope="module")
def signatures():
    spec = importlib.util.spec_from_file_location("signatures", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_signature_on_a_page_is_that_of_the_code(signatures):
    outdated = [page.name for page, text in signatures.pages() if text != page.read_text(encoding="utf-8")]
    assert outdated == [], "run `make reference`"


def test_every_hook_record_and_port_of_the_reference_has_its_signature(signatures, reference):
    page = reference("hooks")
    marked = {block.about for block in page.blocks("signature")}
    titles = {heading.partition("(")[0] for heading in page.headings}
    assert titles & signatures.described().keys() <= marked
    assert {"functions", "sessions", "jobs"} <= marked


def test_a_signature_has_names_types_and_defaults(signatures):
    makers = signatures.described()
    assert "    max_inline_files: int\n    gives_verdicts: bool = True\n" in makers["ReviewRunnerSpec"]()
    assert "    # A plugin has to write this one.\n    async def load(" in makers["StateStore"]()
    assert "peek(self, session_ids: Sequence[str]) -> list[SessionSummary | CorruptSession]" in makers["StateStore"]()
    assert (
        makers["deepwork_checks"]()
        == "def deepwork_checks(context: PluginContext, project: Project) -> Iterable[Check]\n"
    )


def test_a_new_field_is_missed_on_the_page(signatures):
    text = signatures.updated("<!-- signature: Finding -->\n```python\nclass Finding:\n```\n", adding=False)
    assert "    cure: str | None = None\n" in text


def test_every_class_and_function_of_the_api_can_be_shown(signatures):
    makers = signatures.described()
    names = {name for name in api.__all__ if inspect.isclass(getattr(api, name))}
    assert names <= makers.keys()
    for name, make in makers.items():
        assert name in make() or name in ("functions", "sessions", "jobs"), name
