"""How Claude is called: its arguments, its environment, its input."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import anyio
import pytest

from deepwork.paths.user_folders import user_config_file
from deepwork.programs.processes import ENVIRONMENT
from deepwork.testing import output, review, step
from deepwork_claude_runner.command import NO_MENTIONS

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}


@pytest.fixture
def called(reviewed, claude):
    """Have the step reviewed, and return how the program was called."""

    async def called(**more):
        async with reviewed.agent(external_runner="claude") as agent:
            await agent.start()
            assert (await agent.finish(DONE, **more))["status"] == "next_step"
        return claude.calls[-1]

    return called


@pytest.fixture
def settings():
    """Write the user's own settings of the plugin."""

    def write(**values):
        file = user_config_file(os.environ)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"plugins": {"settings": {"claude_runner": values}}}))

    return write


async def test_all_flags_stand_before_the_end_of_the_arguments_and_the_prompt_on_stdin(reviewed, called):
    call = await called()
    assert call["argv"][-2:] == ["-p", "--"]
    assert call["options"]["prompt"] == []
    assert call["options"]["--output-format"] == "json"
    assert "The work" in call["stdin"]
    assert call["cwd"] != str(reviewed.root)
    assert call["options"]["--add-dir"] == str(reviewed.root)


async def test_nothing_of_the_task_stands_where_others_can_read_it(called):
    """Everybody on the machine can read the arguments of a process."""
    call = await called(notes="Mind the gap")
    [mark] = {line.split()[0].strip("[]") for line in call["stdin"].splitlines() if line.endswith(" end]")}
    arguments = " ".join(call["argv"])
    for secret in ("The work", "Complete", "Is everything said?", "True", "Mind the gap", "main", mark):
        assert secret not in arguments.replace('"default": true', "")
        assert secret in call["stdin"] + call["options"]["system prompt"]
    assert call["options"]["mode of the file"] == 0o600
    assert Path(call["options"]["--system-prompt-file"]).name not in os.listdir(tempfile.gettempdir())


async def test_the_reviewer_is_isolated_and_can_only_read(called):
    options = (await called())["options"]
    isolated = {
        "--safe-mode": True,
        "--setting-sources": "",
        "--strict-mcp-config": True,
        "--tools": "Read,Grep,Glob",
        "--permission-mode": "default",
        "--no-session-persistence": True,
        "--max-turns": "20",
    }
    assert {flag: options.get(flag) for flag in isolated} == isolated


async def test_the_system_prompt_has_role_rules_and_criteria_and_the_schema_asks_for_all_of_them(called):
    options = (await called())["options"]
    assert options["system prompt"].startswith("You are a reviewer.")
    assert "- **Complete**: Is everything said?\n- **True**: Is it true?" in options["system prompt"]
    results = json.loads(options["--json-schema"])["properties"]["criteria_results"]
    assert (results["minItems"], results["maxItems"]) == (2, 2)


async def test_the_reviewer_learns_to_recognise_true_section_lines(called):
    call = await called()
    ends = [line for line in call["stdin"].splitlines() if line.endswith(" end]")]
    assert ends[0] in call["options"]["system prompt"]


async def test_mentions_of_files_are_switched_off_and_broken_up(project, claude, history):
    """Claude Code would put the contents of a mentioned file into the prompt, wherever that lies."""
    places = ("@/etc/passwd", "@~/.ssh/id_rsa", "@../x", '@"with blanks"', "(@a.md)", "ada@example.org", "@@/etc/hosts")
    criteria = {"Good @/etc/passwd": "Is it, @/etc/passwd?"}
    project.write_job(
        steps=[step("a", reviews=[review(quality_criteria=criteria, additional_review_guidance="@/etc/hosts")])]
    )
    project.write("a.md", "\n".join(places))
    async with project.agent(external_runner="claude") as agent:
        await agent.start()
        assert (await agent.finish(DONE, notes=" ".join(places)))["status"] == "workflow_complete"
    [call] = claude.calls
    switches = ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "CLAUDE_CODE_DISABLE_FILE_MENTIONS")
    assert [call["env"].get(name) for name in switches] == ["1", "1"]
    for text in (call["stdin"], call["options"]["system prompt"]):
        assert not re.search(r"@\S", text)
    assert "@ /etc/passwd" in call["stdin"]
    assert [result["criterion"] for result in history("verdict")[0]["criteria"]] == ["Good @/etc/passwd"]


async def test_notes_and_guidance_go_on_stdin_whatever_their_size(project, claude):
    guidance = "Be kind. " * 20_000
    project.write_job(steps=[step("a", reviews=[review(additional_review_guidance=guidance)]), step("b")])
    project.write("a.md")
    notes = "Mind the gap. " * 4_000
    async with project.agent(external_runner="claude") as agent:
        await agent.start()
        assert (await agent.finish(DONE, notes=notes))["status"] == "next_step"
    [call] = claude.calls
    assert notes in call["stdin"]
    assert guidance.strip() in call["stdin"]
    assert max(map(len, call["argv"])) < 32 * 1024
    assert call["stdin"].count("Mind the gap. Mind") < 4_000


@pytest.mark.parametrize("where", ["text", "name"])
async def test_criteria_may_be_of_any_length(project, claude, where):
    long = "very " * 20_000
    criteria = {f"Good{long}": "Is it?"} if where == "name" else {"Good": f"Is it {long}good?"}
    project.write_job(steps=[step("a", reviews=[review(quality_criteria=criteria)]), step("b")])
    project.write("a.md")
    async with project.agent(external_runner="claude") as agent:
        await agent.start()
        assert (await agent.finish(DONE))["status"] == "next_step"
    [call] = claude.calls
    assert long.strip() in call["options"]["system prompt"]
    assert max(map(len, call["argv"])) < 32 * 1024


async def test_it_sees_the_allowed_environment_and_no_more(called, monkeypatch, settings):
    allowed = {
        "LANG": "C.UTF-8",
        "LC_TIME": "C",
        "XDG_CACHE_HOME": "/cache",
        "HTTPS_PROXY": "http://proxy",
        "SSL_CERT_FILE": "/certs",
        "ANTHROPIC_API_KEY": "key",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:1",
        "CLAUDE_CODE_OAUTH_TOKEN": "token",
        "CLAUDE_CONFIG_DIR": "/claude",
        "ACME_REGION": "here",
    }
    secret = {"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "CLAUDE_CODE_SOMETHING", "DEEPWORK_PORT", "LD_PRELOAD_NOT"}
    for name, value in {**allowed, **dict.fromkeys(secret, "secret")}.items():
        monkeypatch.setenv(name, value)
    settings(pass_env=["ACME_*"])
    env = (await called())["env"]
    assert {name: env.get(name) for name in allowed} == allowed
    assert not secret & env.keys()
    own = ("ANTHROPIC_", "ACME_", "LC_", "XDG_")
    exact = {*ENVIRONMENT, "DEEPWORK_PROJECT_ROOT", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR", *NO_MENTIONS}
    assert [name for name in env if name not in exact and not name.startswith(own)] == []


async def test_model_turns_budget_and_extra_arguments_can_be_set(called, settings):
    settings(model="opus", max_turns=3, max_budget_usd=0.25, extra_arguments=["--permission-mode", "plan"])
    options = (await called())["options"]
    assert (options["--model"], options["--max-turns"], options["--max-budget-usd"]) == ("opus", "3", "0.25")
    assert options["--permission-mode"] == "plan"


async def test_another_program_can_be_named_by_the_user(reviewed, claude, settings, monkeypatch):
    renamed = claude.program.rename(claude.folder / "claude-beta")
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable))
    settings(command=str(renamed))
    async with reviewed.agent(external_runner="claude") as agent:
        await agent.start()
        assert (await agent.finish(DONE))["status"] == "next_step"


async def test_a_project_cannot_name_a_program_or_its_arguments_before_it_is_trusted(reviewed, claude, called):
    values = {"command": "./evil", "extra_arguments": ["--evil"], "pass_env": ["*"], "max_turns": 7}
    config = {"plugins": {"settings": {"claude_runner": values}}}
    reviewed.write(".deepwork/config.yml", json.dumps(config))
    call = await called()
    assert call["options"]["--max-turns"] == "7"
    assert "--evil" not in call["argv"]


async def test_a_file_of_the_project_in_the_arguments_is_read_as_it_was_trusted_or_not_at_all(
    reviewed, settings, called, history
):
    """The words are the user's; the file may change with the next pull."""
    settings(extra_arguments=["--model", "tools/agents.json"])
    file = reviewed.write("tools/agents.json", "{}")
    trust = [sys.executable, "-m", "deepwork", "trust", "--yes", "--path", str(reviewed.root)]
    async with reviewed.agent(external_runner="claude") as agent:
        await agent.start()
        assert (await agent.finish(DONE))["status"] == "needs_work"
    assert "names a file of this project, and the user has not trusted it" in history("infrastructure")[0]["error"]
    report = await anyio.run_process(trust)
    assert b"--- tools/agents.json ---" in report.stdout
    copy = (await called())["options"]["--model"]
    assert copy.endswith("/tools/agents.json")
    assert not copy.startswith(str(reviewed.root))
    file.write_text('{"evil": {}}')
    async with reviewed.agent(external_runner="claude") as agent:
        await agent.start()
        assert (await agent.finish(DONE))["status"] == "needs_work"


@pytest.mark.parametrize(
    ("own", "of_project", "effect"),
    [
        ({"max_turns": 3}, {"max_turns": 10**9}, {"--max-turns": "3"}),
        ({"max_turns": 3}, {"max_turns": 2}, {"--max-turns": "2"}),
        ({"max_budget_usd": 0.05}, {"max_budget_usd": 1e6}, {"--max-budget-usd": "0.05"}),
        ({"max_budget_usd": 0.05}, {"max_budget_usd": 0.01}, {"--max-budget-usd": "0.01"}),
        ({"model": "haiku"}, {"model": "opus"}, {"--model": "haiku"}),
        ({"model": "haiku"}, {"model": "haiku"}, {"--model": "haiku"}),
    ],
)
async def test_a_project_lowers_what_its_user_pays_and_never_raises_it(
    reviewed, claude, called, settings, own, of_project, effect
):
    """F12, a09: budget, turns and model of the project had effect without trust."""
    settings(**own)
    reviewed.write(".deepwork/config.yml", json.dumps({"plugins": {"settings": {"claude_runner": of_project}}}))
    options = (await called())["options"]
    assert {name: options.get(name) for name in effect} == effect


async def test_a_concurrency_of_its_own_bounds_it_within_the_pool(project, claude, settings):
    settings(concurrency=1)
    project.write_job(steps=[step("a", outputs={"parts": output("files")}, reviews=[review("parts")])])
    files = [project.write(f"part{number}.md").name for number in range(3)]
    claude.behaves(mode="pass", seconds=0.1)
    async with project.agent(external_runner="claude") as agent:
        await agent.start()
        assert (await agent.finish({"parts": files}))["status"] == "workflow_complete"
    spans = sorted((span["began"], span["ended"]) for span in claude.spans())
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
