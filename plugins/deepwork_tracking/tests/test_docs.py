"""The pages about this plugin name what there is, and the example runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from deepwork_tracking import errors, words
from deepwork_tracking.cli import track

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "plugins/deepwork_tracking/examples/two_subagents.py"
REFERENCE = (ROOT / "docs/reference/tracking.md").read_text()
PROTOCOLS = [(ROOT / f"docs/how-to/track-as-{who}.md").read_text() for who in ("an-orchestrator", "a-subagent")]


def section(title):
    return re.search(rf"^### {title}\n(.*?)(^##|\Z)", REFERENCE, re.MULTILINE | re.DOTALL)[1]


def names_of(schema, prefix=""):
    """Name every argument of a tool, those of objects with a dot."""
    definitions = schema.get("$defs", {})
    for name, about in schema["properties"].items():
        choices = [about, *about.get("anyOf", [])]
        inner = [definitions[choice["$ref"].rpartition("/")[2]] for choice in choices if "$ref" in choice]
        if inner:
            yield from (f"{prefix}{name}.{key}" for key in inner[0]["properties"])
        else:
            yield f"{prefix}{name}"


async def test_every_tool_and_argument_is_in_its_section_of_the_reference(repo):
    async with repo.tracker() as agent:
        for tool in await agent.client.list_tools():
            missing = [name for name in names_of(tool.input_schema) if f"`{name}`" not in section(tool.name)]
            assert not missing, tool.name
            assert any(f"{tool.name}(" in protocol for protocol in PROTOCOLS)


def test_every_word_code_command_and_option_is_in_the_reference():
    literals = [kind for kind in vars(words).values() if getattr(kind, "__args__", None)]
    for word in {word for kind in literals for word in kind.__args__}:
        assert f"`{word}`" in REFERENCE
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, errors.TrackingError) and kind is not errors.TrackingError:
            assert f"| `{kind.code}` | {'yes' if kind.recoverable else 'no'} |" in REFERENCE
    for name, command in track.commands.items():
        assert f"`deepwork track {name}" in REFERENCE
        options = [option for parameter in command.params for option in parameter.opts if option.startswith("--")]
        assert all(f"`{option}" in REFERENCE for option in options)


@pytest.mark.slow
def test_the_example_shows_what_the_agents_have_recorded():
    result = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=240)
    assert result.returncode == 0, result.stderr
    for text in ("Say hello  COMPLETED", "A api.md", "A ui.md", "UNCLEAR_REQUIREMENT  Write ui.md", "## Metrics"):
        assert text in result.stdout
