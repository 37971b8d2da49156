"""A project without one of the features that ship with the kernel: what still works, and what the errors say."""

from __future__ import annotations

import json
import os
import re

import click
import pytest

from deepwork.api import Answerer, open_context
from deepwork.builtin.local_jobs import PACKAGED
from deepwork.errors import ConfigError, UnknownName
from deepwork.loading.features import FEATURES
from deepwork.testing import Refused, review, step

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["environment", "configuration"])
def leave_out(request, project, monkeypatch):
    """Leave a feature out, by the variable or by the configuration of the project."""

    def leave_out(name):
        if request.param == "environment":
            monkeypatch.setenv("DEEPWORK_NO_PLUGINS", f"{os.environ['DEEPWORK_NO_PLUGINS']},{name}")
        else:
            project.write(".deepwork/config.yml", f"plugins: {{block: [{name}]}}\n")

    return leave_out


async def test_without_json_store_a_server_asks_for_another_store_and_works_with_it(project, leave_out):
    leave_out("json_store")
    project.write_job(steps=[step("a")])
    with pytest.raises(UnknownName) as error:
        project.server()
    assert "no store: choose state.store; available: memory" in error.value.message
    assert "feature 'json_store'" in error.value.message
    async with project.agent(project.server(state_store="memory")) as agent:
        assert (await agent.start())["step_id"] == "a"


def test_without_memory_store_a_server_names_the_feature_and_jobs_can_still_be_tested(project, leave_out, invoke):
    leave_out("memory_store")
    project.write_job(steps=[step("a")])
    with pytest.raises(UnknownName) as error:
        project.server(state_store="memory")
    assert "no state store 'memory'" in error.value.message
    assert "feature 'memory_store'" in error.value.message
    assert invoke("jobs", "test", PACKAGED / "project_tour").code == 0  # a rehearsal has a store of its own


def test_without_authoring_its_commands_are_unknown_and_the_error_names_the_feature(leave_out, invoke):
    leave_out("authoring")
    for command in ("check", "new", "test"):
        with pytest.raises(click.UsageError) as error:
            invoke("jobs", command)
        assert f"No such command '{command}'. Left out: feature 'authoring'." in error.value.message
    assert "  check " not in invoke("jobs", "--help").out
    assert invoke("jobs", "list").code == 0


async def test_without_local_jobs_there_are_no_workflows(project, leave_out):
    project.write_job()
    leave_out("local_jobs")
    async with project.agent() as agent:
        assert (await agent.call("get_workflows"))["jobs"] == []


async def test_without_workflow_tools_other_sets_are_served(project, leave_out, install, monkeypatch):
    leave_out("workflow_tools")
    install("good")
    async with project.agent(project.server()) as agent:
        tools = {tool.name for tool in await agent.client.list_tools()}
    assert "greet" in tools
    assert "start_workflow" not in tools


async def test_a_set_of_a_feature_that_is_left_out_is_said_to_be_missing_with_the_feature(project, leave_out):
    leave_out("workflow_tools")
    with pytest.raises(UnknownName) as error:
        project.server(tools=["core"])
    assert "no tool set 'core'" in error.value.message
    assert "feature 'workflow_tools'" in error.value.message


async def test_without_reviewers_workflows_without_reviews_run_and_others_are_refused(project, leave_out):
    leave_out("reviewers")
    project.write_job("plain", steps=[step("a")])
    project.write_job("judged", steps=[step("a"), step("b", reviews=[review()])])
    project.write("a.md")
    async with project.agent(project.server()) as agent:
        with pytest.raises(Refused, match=r"have reviews, and there is no reviewer 'self'.*feature 'reviewers'"):
            await agent.start("judged")
        assert await agent.call("get_workflows")  # the server goes on
        await agent.start("plain")
        assert (await agent.finish({"a.md": "a.md"}))["status"] == "workflow_complete"


async def test_without_reviewers_what_the_runner_of_a_plugin_judges_can_start(project, leave_out, install):
    leave_out("reviewers")
    install("good")
    project.write_job(steps=[step("a", reviews=[review()])])
    async with project.agent(project.server(external_runner="acme")) as agent:
        assert (await agent.start())["step_id"] == "a"


async def test_without_reviewers_everything_runs_where_the_gate_is_off(project, leave_out):
    leave_out("reviewers")
    project.write_job(steps=[step("a", reviews=[review()])])
    project.write("a.md")
    async with project.agent(project.server(enable_quality_gate=False)) as agent:
        await agent.start()
        assert (await agent.finish({"a.md": "a.md"}))["status"] == "workflow_complete"


VACUOUS = {"tests": {"run": ["true"], "verdict": "exit_code"}}


@pytest.mark.parametrize("policy", [{}, {"prove": "warn"}])
async def test_without_proofs_the_pass_of_a_gate_counts_untried(reviewed, leave_out, user_config, history, policy):
    user_config(commands=VACUOUS, **policy)
    leave_out("proofs")
    async with reviewed.agent(external_runner="tests") as agent:
        await agent.start()
        reply = await agent.finish({"a.md": "a.md"})
    assert (reply["status"], reply.get("notices")) == ("next_step", None)
    assert "proof" not in history("verdict")[0]


@pytest.mark.parametrize(("policy", "why"), [({"prove": "hold"}, ""), ({"strict": True}, r" \(a strict gate holds\)")])
async def test_without_proofs_no_server_starts_that_should_hold_what_was_not_tried(
    reviewed, leave_out, user_config, policy, why
):
    user_config(commands=VACUOUS, **policy)
    leave_out("proofs")
    with pytest.raises(ConfigError, match=f"quality_gate.prove is hold{why}, and no plugin.*feature 'proofs'"):
        reviewed.server(external_runner="tests")


def test_without_proofs_gates_can_be_tried_on_files_and_not_proved(reviewed, leave_out, user_config, invoke):
    user_config(commands=VACUOUS, prove="hold")
    leave_out("proofs")
    assert invoke("gate", "try", "demo", "a", "--file", "a.md", "--runner", "tests").code == 0
    with pytest.raises(click.UsageError, match=r"No such command 'prove'\. Left out: feature 'proofs'"):
        invoke("gate", "prove", "demo", "a")


# What `deepwork serve --no-plugin FEATURE` says of an option that needs the feature.
NEEDED_BY = {
    "json_store": ([], 1, r"no store: choose state\.store; available: memory; left out: .*feature 'json_store'"),
    "memory_store": (["--state-store", "memory"], 1, r"no state store 'memory'.*feature 'memory_store'"),
    "local_jobs": ([], 0, r"\A\Z"),
    "reviewers": (["--external-runner", "acme"], 1, r"no review runner 'acme'.*feature 'reviewers'"),
    "proofs": ([], 0, r"\A\Z"),
    "workflow_tools": (["--tools", "core"], 1, r"no tool set 'core'.*feature 'workflow_tools'"),
    "authoring": ([], 0, r"\A\Z"),
    "upkeep": ([], 0, r"\A\Z"),
    "http": (["--transport", "http"], 2, r"'http' is not 'stdio'\. Left out: feature 'http'"),
    "people": ([], 0, r"\A\Z"),
    "clients": ([], 0, r"\A\Z"),
    "demo": ([], 0, r"\A\Z"),
}


@pytest.mark.parametrize("feature", FEATURES)
def test_an_option_leaves_a_feature_out_for_one_server(run, feature):
    arguments, code, pattern = NEEDED_BY[feature]
    ended = run("serve", "--no-plugin", feature, *arguments)
    assert (ended.returncode, ended.stdout) == (code, "")
    assert re.search(pattern, ended.stderr, re.DOTALL)


async def test_the_option_changes_what_a_server_offers(project, install):
    install("good")
    project.write_job(steps=[step("a", reviews=[review()])])
    async with project.stdio_agent("--no-plugin", "local_jobs") as agent:
        assert "demo" not in {job["name"] for job in (await agent.call("get_workflows"))["jobs"]}
    async with project.stdio_agent("--no-plugin", "workflow_tools") as agent:
        assert "start_workflow" not in {tool.name for tool in await agent.client.list_tools()}
    async with project.stdio_agent("--no-plugin", "reviewers") as agent:
        with pytest.raises(Refused, match=r"have reviews, and there is no reviewer 'self'.*feature 'reviewers'"):
            await agent.start()


def test_without_http_its_transports_and_options_are_unknown_and_the_error_names_the_feature(project, leave_out, run):
    leave_out("http")
    ended = run("serve", "--transport", "http")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "'http' is not 'stdio'. Left out: feature 'http'." in ended.stderr
    ended = run("serve", "--port", "8001")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert re.search(r"No such option:? '?--port", ended.stderr)
    assert "Left out: feature 'http'." in ended.stderr


@pytest.mark.parametrize(
    ("feature", "command"),
    [("people", "inbox"), ("clients", "connect"), ("clients", "status"), ("clients", "uninstall")],
)
def test_without_its_feature_a_command_is_unknown_and_the_error_names_the_feature(leave_out, invoke, feature, command):
    leave_out(feature)
    with pytest.raises(click.UsageError) as error:
        invoke(command)
    assert f"No such command '{command}': the feature '{feature}' has it, which is left out." in error.value.message
    assert f"  {command} " not in invoke("--help").out


@pytest.mark.parametrize("command", ["comments", "prune", "show"])
def test_without_people_the_commands_that_it_adds_to_gate_are_unknown(leave_out, invoke, command):
    leave_out("people")
    with pytest.raises(click.UsageError, match=rf"No such command '{command}'\. Left out: feature 'people'"):
        invoke("gate", command)
    assert invoke("gate", "list").code == 0


@pytest.mark.parametrize(("group", "command"), [("sessions", "show"), ("gate", "try"), ("jobs", "get-stack")])
def test_without_upkeep_its_commands_are_unknown_and_sessions_are_listed(leave_out, invoke, group, command):
    leave_out("upkeep")
    with pytest.raises(click.UsageError, match=rf"No such command '{command}'\. Left out: feature 'upkeep'"):
        invoke(group, command)
    assert f"  {command} " not in invoke(group, "--help").out
    assert invoke("sessions", "list").code == 0


def test_without_clients_a_hook_prints_nothing_and_lets_the_agent_go_on(leave_out, run):
    """Any other exit code would hold the agent."""
    leave_out("clients")
    ended = run("hook", "Stop", "--client", "gemini", "--of-another-release")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_a_project_named_by_path_leaves_its_features_out(project, invoke, tmp_path):
    project.write(".deepwork/config.yml", "plugins: {block: [people]}\n")
    with pytest.raises(click.UsageError, match="the feature 'people' has it"):
        invoke("inbox", "--path", project.root, cwd=tmp_path)


def test_a_comment_about_blocking_leaves_nothing_out(project, invoke):
    project.write(".deepwork/config.yml", "# plugins:\n#   block: [people]\n")
    assert invoke("inbox").code == 0


def test_without_clients_a_project_is_prepared_and_the_user_is_told_what_to_do(project, leave_out, invoke):
    leave_out("clients")
    ended = (
        invoke("init", "--tools", "core") if not (project.root / ".deepwork/config.yml").exists() else invoke("init")
    )
    assert ended.code == 0
    assert "created  .deepwork/jobs/project_tour" in ended.out
    assert f"have your agent start `deepwork serve --path {project.root}`" in ended.out
    with pytest.raises(click.UsageError, match=r"No such option:? '?--client.*Left out: feature 'clients'"):
        invoke("init", "--client", "claude")


def test_without_clients_and_people_doctor_says_nothing_of_them(leave_out, invoke):
    names = {finding["check"] for finding in json.loads(invoke("doctor", "--json").out)["findings"]}
    assert "clients" in names
    leave_out("clients")
    names = {finding["check"] for finding in json.loads(invoke("doctor", "--json").out)["findings"]}
    assert "clients" not in names


async def test_without_people_only_plugins_say_what_waits(project, leave_out, monkeypatch):
    project.write(".deepwork/tmp/session_damaged.json.corrupt")
    leave_out("people")
    async with open_context("test", project.root) as context:
        contents = await context.inbox().items(Answerer())
    assert (contents.items, contents.failures) == ((), ())
