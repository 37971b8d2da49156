"""The pages about plans: everything that exists is in them, and the tutorial does what it shows."""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from deepwork_orchestration import arguments, limits, messages, models
from deepwork_orchestration.cli import plan
from deepwork_orchestration.errors import RECOVERABLE
from deepwork_orchestration.settings import OrchestrationSettings
from deepwork_orchestration.states import TASK_TRANSITIONS, WORKFLOW_TRANSITIONS
from deepwork_orchestration.tools import OBSERVER, TOOLS, WORKER

ROOT = Path(__file__).parents[3]
REFERENCE = (ROOT / "docs/reference/orchestration.md").read_text()
TUTORIAL = (ROOT / "docs/tutorial/three-agents-one-plan.md").read_text()
SOURCES = Path(models.__file__).parent
BLOCK = re.compile(r"<!-- plugin: (\w+) ?(\S*) -->\n```\w+\n(.*?)```", re.DOTALL)


def rows(title):
    """Return the table below a heading: the names in its first cells, and the other cells."""
    section = REFERENCE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    lines = [line[2:-2].split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return {first.strip("`"): cells for first, *cells in lines[1:]}


def own_parameters(tool):
    parameters = inspect.signature(tool.fn).parameters.values()
    names = [parameter.name for parameter in parameters if parameter.kind is not parameter.POSITIONAL_ONLY]
    return names + ["request_id"] * tool.repeatable


def test_every_tool_is_listed_with_its_parameters():
    listed = rows("Tools")
    assert [*listed] == [tool.name for tool in TOOLS]
    for tool in TOOLS:
        assert re.findall(r"`(\w+)`", listed[tool.name][0]) == own_parameters(tool), tool.name


def test_every_error_is_listed_and_raised():
    listed = rows("Errors of the tools")
    assert {code: cells[0] == "yes" for code, cells in listed.items()} == RECOVERABLE
    source = "".join(path.read_text() for path in SOURCES.glob("*.py") if path.name != "errors.py")
    kinds = ("agent", "message", "recipient", "sender", "task", "template", "workflow", "workspace")
    derived = {f"{kind.upper()}_NOT_FOUND" for kind in kinds if f'"{kind}"' in source}
    raised = set(re.findall(r'OrchestrationError\(\s*"([A-Z_]+)"', source)) | derived | {"INVALID_INPUT"}
    assert raised == set(RECOVERABLE)


def test_every_field_of_an_object_is_listed():
    listed = rows("Objects")
    hidden = {"fence", "open_dependencies", "lost_task_ids", "principal"}
    for name in listed:
        shape = models.WholeWorkflow if name == "workflow" else getattr(models, name.title())
        fields = [field.name for field in dataclasses.fields(shape) if field.name not in hidden]
        extra = ["type"] if name == "checkpoint" else []
        assert re.findall(r"`(\w+)`", listed[name][0]) == extra + fields, name


def test_every_setting_and_command_is_listed():
    assert [*rows("Settings")] == [*OrchestrationSettings.model_fields]
    default = OrchestrationSettings().lease_seconds
    assert rows("Settings")["lease_seconds"][1] == f"`{default}`"
    commands = [name.split()[2] for name in rows("Commands")]
    assert sorted(commands) == sorted(plan.commands)
    options = {option for command in plan.commands.values() for item in command.params for option in item.opts}
    assert [option for option in options if option.startswith("--") and option not in REFERENCE] == []


def test_every_event_is_listed():
    source = "".join(path.read_text() for path in SOURCES.glob("*.py"))
    assert set(rows("Events")) == set(re.findall(r'transaction\.emit\(\s*"([a-z:]+)"', source))


def test_the_subsets_are_listed_with_their_tools():
    for name, tools in (("worker", WORKER), ("observer", OBSERVER)):
        (line,) = [line for line in REFERENCE.splitlines() if line.startswith(f"- `{name}`: ")]
        assert re.findall(r"`(\w+)`", line)[1:] == [*tools]
        assert len(tools) == 15


def test_the_transitions_of_the_page_are_those_of_the_code():
    section = REFERENCE.partition("\n## Status\n")[2].partition("\n## ")[0]
    for part, table in zip(section.split("| Of a ")[1:], (WORKFLOW_TRANSITIONS, TASK_TRANSITIONS), strict=True):
        targets_of = {}
        for line in part.splitlines()[2:]:
            if not line.startswith("| "):
                break
            first, _, last = line[2:-2].partition(" | ")
            for status in re.findall(r"`(\w+)`", first):
                targets_of[status] = set(re.findall(r"`(\w+)`", last)) - {"workflow_set_plan"}
        expected = {status: set(targets) for status, targets in table.items()}
        if "planning" in targets_of and "ready" in targets_of:
            expected["planning"] |= {"ready"}  # by workflow_set_plan
        assert targets_of == expected


def test_the_limits_of_the_page_are_those_of_the_code():
    assert [cells[0].split(";")[0].split(" seconds")[0] for cells in rows("Limits").values()] == [
        f"1 to {arguments.MAX_NAME} characters",
        f"{arguments.MAX_BYTES // 1024**2} MiB each",
        f"{limits.MAX_PLAN // 1024**2} MiB",
        f"1 to {arguments.MAX_LIMIT:,}",
        f"1 to {arguments.MAX_PARALLEL:,}",
        f"{arguments.MAX_TASKS:,}",
        f"{arguments.MAX_DEPENDENCIES:,}",
        f"{messages.MAX_BROADCAST // 1024**2} MiB",
        f"{limits.MAX_ANSWER // 1024**2} MiB",
        f"{limits.MAX_NAMES:,}",
        f"1 to {arguments.MAX_EXPIRY:,}",
    ]


@pytest.mark.slow
def test_the_tutorial_does_what_it_shows(tmp_path):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    output = ""
    printed = []
    for kind, about, text in BLOCK.findall(TUTORIAL):
        if kind == "file":
            file = tmp_path / about
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        elif kind == "run":
            process = subprocess.run(
                ["bash", "-euc", text], cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True,
                timeout=240,
            )  # fmt: skip
            assert process.returncode == 0, process.stdout + process.stderr
            output = process.stdout
            printed.append(output)
        else:
            pattern = re.sub(r" +", " +", re.escape(text).replace("\\ ", " ").replace("…", ".*"))
            assert re.fullmatch(pattern, output), output
    first, _, second, _ = printed
    assert "carol: the plan is done" in first
    names = ["api", "data", "page", "release"]
    assert sorted(line.split()[1] for line in first.splitlines() if not line.startswith("carol")) == names
    assert "carol: the plan is done" in second
