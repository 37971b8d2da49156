"""`deepwork sessions` and `deepwork jobs get-stack`, on files that a real server has written."""

import json
import os
import re
import subprocess
import sys

import pytest

from deepwork.testing import step

pytestmark = pytest.mark.anyio


@pytest.fixture
def demo(project):
    project.write_job(
        steps=[*map(step, "abc")], workflows={"main": ["a", "b"], "single": ["a"], "opening": [["b", "c"], "a"]}
    )
    for name in "abc":
        project.write(f"{name}.md")
    return project


@pytest.fixture
async def three(demo):
    """Make an aborted, a completed and an active session, in this order."""
    async with demo.agent() as agent:
        aborted = (await agent.start())["session_id"]
        await agent.call("abort_workflow", explanation="not needed")
        completed = (await agent.start(workflow="single"))["session_id"]
        await agent.finish({"a.md": "a.md"})
        active = (await agent.start())["session_id"]
        await agent.finish({"a.md": "a.md"}, notes="quick")
    return aborted, completed, active


@pytest.fixture
def edit(project):
    def change(session_id, **fields):
        file = project.state / f"session_{session_id}.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **fields}, indent=2) + "\n")

    return change


def tear(project, session_id):
    file = project.state / f"session_{session_id}.json"
    file.write_bytes(file.read_bytes()[:100])


def files(project):
    return {path: path.read_bytes() for path in project.state.rglob("*") if path.is_file()}


async def test_list_shows_sessions_of_every_state_the_last_changed_first(three, run):
    result = run("sessions", "list")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [
        [session_id, status] for session_id, status in zip(three[::-1], ["active", "completed", "aborted"], strict=True)
    ]
    assert "demo/main at b, step 2 of 2: a goal" in lines[0]
    assert lines[1].endswith("demo/single: a goal")


async def test_list_as_json_has_stable_keys(three, run):
    report = json.loads(run("sessions", "list", "--json").stdout)
    assert set(report) == {"sessions", "damaged"}
    assert set(report["sessions"][0]) == {
        "session_id",
        "job_name",
        "workflow_name",
        "step_id",
        "goal",
        "status",
        "started_at",
        "updated_at",
        "principal",
    }


async def test_list_can_be_limited_to_a_status(three, run):
    report = json.loads(run("sessions", "list", "--status", "aborted", "--json").stdout)
    assert [session["session_id"] for session in report["sessions"]] == [three[0]]


async def test_list_shows_the_ten_newest_and_with_all_every_session(demo, run):
    async with demo.agent() as agent:
        ids = [(await agent.start())["session_id"] for _ in range(12)]
    newest = json.loads(run("sessions", "list", "--json").stdout)["sessions"]
    everything = json.loads(run("sessions", "list", "--all", "--json").stdout)["sessions"]
    assert [session["session_id"] for session in newest] == ids[:1:-1]
    assert [session["session_id"] for session in everything] == ids[::-1]


async def test_list_of_a_project_without_sessions_says_so_on_stderr_and_makes_nothing(demo, run):
    result = run("sessions", "list")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "No sessions.\n")
    assert not demo.state.exists()


async def test_list_sets_damaged_files_aside_and_names_them(demo, three, run):
    tear(demo, three[1])
    result = run("sessions", "list")
    assert result.returncode == 0, result.stderr
    (aside,) = demo.state.glob("*.corrupt")
    assert f"damaged   .deepwork/tmp/{aside.name}" in result.stdout
    assert three[0] in result.stdout
    assert json.loads(run("sessions", "list", "--json").stdout)["damaged"] == [f".deepwork/tmp/{aside.name}"]


async def test_show_tells_goal_and_steps(three, run):
    result = run("sessions", "show", three[2])
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[:2] == [f"{three[2]}  demo/main  active  step 2 of 2", "goal     a goal"]
    assert '  done  a  {"a.md": "a.md"}\n  now   b\n' in result.stdout


async def test_show_of_an_aborted_session_tells_why(three, run):
    assert "not needed" in run("sessions", "show", three[0]).stdout


async def test_show_marks_the_open_members_of_a_group(demo, run):
    async with demo.agent() as agent:
        session_id = (await agent.start(workflow="opening"))["session_id"]
    assert "  now   b\n  open  c\n" in run("sessions", "show", session_id).stdout


async def test_show_as_json_is_the_stored_session(demo, three, run):
    report = json.loads(run("sessions", "show", three[2], "--json").stdout)
    assert report == json.loads((demo.state / f"session_{three[2]}.json").read_text())


async def test_history_tells_what_happened_in_order(three, run):
    result = run("sessions", "history", three[2])
    kinds = [line.split()[1:3] for line in result.stdout.splitlines()]
    assert [kind[0] for kind in kinds] == ["started", "step_begun", "step_completed", "step_begun"]
    assert [kind[1] for kind in kinds[1:]] == ["a", "a", "b"]


async def test_history_as_json_has_time_kind_step_and_detail(three, run):
    events = json.loads(run("sessions", "history", three[0], "--json").stdout)
    assert set(events[0]) == {"at", "kind", "step_id", "detail"}
    assert events[-1]["detail"] == {"explanation": "not needed"}


async def test_resume_text_is_what_the_agent_would_be_told(demo, three, run):
    async with demo.agent() as agent:
        (resource,) = await agent.client.read_resource(f"deepwork://sessions/{three[2]}")
    assert run("sessions", "resume-text", three[2]).stdout == resource.text + "\n"
    assert json.loads(run("sessions", "resume-text", three[2], "--json").stdout) == {
        "session_id": three[2],
        "text": resource.text,
    }


async def test_a_long_resume_text_is_cut_with_the_rest_in_a_file(demo, run):
    demo.write(".deepwork/jobs/demo/steps/a.md", "A line of instructions\n" * 1000)
    async with demo.agent() as agent:
        session_id = (await agent.start())["session_id"]
    result = run("sessions", "resume-text", session_id)
    assert len(result.stdout) <= 8001
    assert f".deepwork/tmp/resume_{session_id}.md" in result.stdout
    assert (demo.state / f"resume_{session_id}.md").read_text().count("A line of instructions") == 1000


async def test_resume_text_of_an_ended_session_is_an_error_that_says_how_it_ended(three, run):
    result = run("sessions", "resume-text", three[0])
    assert (result.returncode, result.stdout) == (1, "")
    assert "is over: aborted (not needed)" in result.stderr


async def test_abort_ends_an_orphan_and_keeps_the_reason(demo, three, run):
    result = run("sessions", "abort", three[2], "--reason", "nobody will go on")
    assert (result.returncode, result.stdout) == (0, f"aborted  {three[2]}  demo/main\n")
    stored = json.loads((demo.state / f"session_{three[2]}.json").read_text())
    assert (stored["status"], stored["abort_reason"]) == ("aborted", "nobody will go on")
    assert stored["history"][-1]["kind"] == "aborted"


async def test_abort_as_json_tells_what_was_aborted(three, run):
    report = json.loads(run("sessions", "abort", three[2], "--reason", "enough", "--json").stdout)
    assert (report["session_id"], report["status"]) == (three[2], "aborted")


async def test_abort_wants_a_reason(three, run):
    result = run("sessions", "abort", three[2])
    assert result.returncode == 2
    assert "--reason" in result.stderr


async def test_abort_of_an_ended_session_is_an_error(three, run):
    result = run("sessions", "abort", three[1], "--reason", "enough")
    assert result.returncode == 1
    assert "is over: completed" in result.stderr


async def test_an_agent_whose_session_was_aborted_from_the_terminal_gets_a_clear_answer(demo, run):
    async with demo.stdio_agent() as agent:
        begin = await agent.start()
        assert run("sessions", "abort", begin["session_id"], "--reason", "stop it").returncode == 0
        named = {"session_id": begin["session_id"], "step_id": "a"}
        text = await agent.refused("finished_step", outputs={"a.md": "a.md"}, **named)
        assert f"Session {begin['session_id']!r} of demo/main is over: aborted (stop it)" in text
        repeat = await agent.call("abort_workflow", explanation="then so", session_id=begin["session_id"])
        assert repeat["explanation"] == "stop it"
        assert (await agent.start())["step_id"] == "a"


async def test_without_ids_that_agent_is_told_too(demo, run):
    async with demo.agent() as agent:
        begin = await agent.start()
        run("sessions", "abort", begin["session_id"], "--reason", "stop it")
        text = await agent.refused("finished_step", outputs={"a.md": "a.md"})
    assert "aborted (stop it)" in text


async def test_the_beginning_of_an_id_will_do(three, run):
    result = run("sessions", "show", three[2][:10])
    assert result.stdout.startswith(three[2])


async def test_a_beginning_that_several_ids_have_is_an_error(three, run):
    result = run("sessions", "show", "")
    assert result.returncode == 1
    assert "is the beginning of 3 ids" in result.stderr
    assert "Hint: `deepwork sessions list --all`" in result.stderr


@pytest.mark.parametrize("command", [["show"], ["history"], ["resume-text"], ["abort", "--reason", "enough"]])
async def test_an_unknown_id_is_an_error_with_a_hint(three, run, command):
    result = run("sessions", *command, "nobody")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: Session 'nobody' not found")


async def test_a_damaged_session_is_an_error_that_names_where_it_was_put(demo, three, run):
    tear(demo, three[2])
    result = run("sessions", "show", three[2])
    (aside,) = demo.state.glob("*.corrupt")
    assert result.returncode == 1
    assert aside.name in result.stderr
    assert "Traceback" not in result.stderr


async def test_clean_archives_only_what_ended_long_ago(demo, three, run, edit):
    edit(three[0], updated_at="2020-01-01T00:00:00.000000+00:00")
    edit(three[2], updated_at="2020-01-01T00:00:00.000000+00:00")
    result = run("sessions", "clean")
    assert (result.returncode, result.stdout) == (0, f"archived  {three[0]}\n")
    assert (demo.state / "archive" / f"session_{three[0]}.json").exists()
    remaining = {session["session_id"] for session in json.loads(run("sessions", "list", "--json").stdout)["sessions"]}
    assert remaining == set(three[1:])


async def test_clean_takes_the_age_in_days(demo, three, run):
    assert run("sessions", "clean", "--older-than", "1").stdout == ""
    result = run("sessions", "clean", "--older-than", "0", "--json")
    assert sorted(json.loads(result.stdout)["archived"]) == sorted(three[:2])


async def test_clean_deletes_nothing(demo, three, run):
    demo.write(f".deepwork/tmp/quality_review_{three[1]}_a.md", "criteria")
    demo.write(f".deepwork/tmp/resume_{three[1]}.md", "text")
    before = sorted(content for path, content in files(demo).items() if path.suffix != ".lock")
    run("sessions", "clean", "--older-than", "0")
    assert sorted(content for path, content in files(demo).items() if path.suffix != ".lock") == before
    archived = {path.name for path in (demo.state / "archive").iterdir()}
    assert {f"quality_review_{three[1]}_a.md", f"resume_{three[1]}.md"} <= archived


async def test_clean_leaves_the_files_of_other_sessions_where_they_are(demo, run):
    """Ids that people gave by hand may be part of other names."""
    async with demo.agent() as agent:
        active = (await agent.start())["session_id"]
    stored = json.loads((demo.state / f"session_{active}.json").read_text())
    demo.write(".deepwork/tmp/session_a.json", json.dumps({**stored, "session_id": "a", "status": "completed"}))
    demo.write(f".deepwork/tmp/quality_review_{active}_a.md", "criteria")
    assert run("sessions", "clean", "--older-than", "0").stdout == "archived  a\n"
    assert (demo.state / f"quality_review_{active}_a.md").exists()
    assert (demo.state / f"session_{active}.json").exists()


async def test_a_dry_run_of_clean_moves_nothing(demo, three, run):
    before = files(demo)
    result = run("sessions", "clean", "--older-than", "0", "--dry-run")
    assert sorted(result.stdout.splitlines()) == sorted(f"would archive  {session_id}" for session_id in three[:2])
    assert files(demo) == before


@pytest.mark.parametrize("command", [["list"], ["list", "--all", "--json"], ["show", "{}"], ["history", "{}"]])
async def test_looking_changes_nothing(demo, three, run, command):
    before = files(demo)
    assert run("sessions", *(part.format(three[2]) for part in command)).returncode == 0
    assert files(demo) == before


async def test_get_stack_prints_the_active_sessions_for_hooks(demo, three, run):
    result = run("jobs", "get-stack")
    assert result.returncode == 0, result.stderr
    (item,) = json.loads(result.stdout)["active_sessions"]
    assert item == {
        "session_id": three[2],
        "job_name": "demo",
        "workflow_name": "main",
        "goal": "a goal",
        "current_step_id": "b",
        "instance_id": None,
        "completed_steps": ["a"],
        "common_job_info": None,
        "current_step_instructions": None,
        "resume": f'finished_step(session_id="{three[2]}", step_id="?", outputs={{}})',
        "step_number": 2,
        "total_steps": 2,
    }


async def test_get_stack_prints_the_ten_newest_and_with_all_every_active_session(demo, run):
    async with demo.agent() as agent:
        ids = [(await agent.start())["session_id"] for _ in range(12)]
    newest = json.loads(run("jobs", "get-stack").stdout)["active_sessions"]
    everything = json.loads(run("jobs", "get-stack", "--all").stdout)["active_sessions"]
    assert [session["session_id"] for session in newest] == ids[:1:-1]
    assert [session["session_id"] for session in everything] == ids[::-1]


async def test_get_stack_leaves_out_sessions_that_cannot_be_read(demo, three, run, edit):
    async with demo.agent() as agent:
        torn, newer = [(await agent.start())["session_id"] for _ in range(2)]
    tear(demo, torn)
    edit(newer, schema_version=7)
    result = run("jobs", "get-stack")
    assert result.returncode == 0, result.stderr
    assert [session["session_id"] for session in json.loads(result.stdout)["active_sessions"]] == [three[2]]


OLD = {
    "session_id": "0a1b2c3d",
    "job_name": "demo",
    "workflow_name": "main",
    "instance_id": None,
    "goal": "an old goal",
    "current_step_id": "b",
    "current_entry_index": 1,
    "step_progress": {"a": {"step_id": "a", "completed_at": "2025-01-01T00:00:00.000000+00:00", "outputs": {}}},
    "started_at": "2025-01-01T00:00:00.000000+00:00",
    "completed_at": None,
    "status": "active",
    "abort_reason": None,
}


async def test_get_stack_takes_what_release_0_9_did_not_keep_from_the_job(demo, run):
    demo.write(".deepwork/tmp/session_0a1b2c3d.json", json.dumps(OLD, indent=2))
    (item,) = json.loads(run("jobs", "get-stack").stdout)["active_sessions"]
    assert (item["step_number"], item["total_steps"]) == (2, 2)


async def test_get_stack_does_not_know_the_position_where_the_job_of_an_old_session_is_gone(demo, run):
    demo.write(".deepwork/tmp/session_0a1b2c3d.json", json.dumps({**OLD, "job_name": "gone"}, indent=2))
    (item,) = json.loads(run("jobs", "get-stack").stdout)["active_sessions"]
    assert item["current_step_id"] == "b"
    assert "step_number" not in item


async def test_the_commands_work_while_a_server_is_running(demo, run):
    async with demo.stdio_agent() as agent:
        begin = await agent.start()
        assert begin["session_id"] in run("sessions", "list").stdout
        await agent.finish({"a.md": "a.md"})
        assert "Now at step 'b'" in run("sessions", "resume-text", begin["session_id"]).stdout
        assert run("sessions", "clean", "--older-than", "0").returncode == 0
        assert (await agent.finish({"b.md": "b.md"}))["status"] == "workflow_complete"


@pytest.mark.parametrize(
    "command",
    [
        ["sessions", "list"],
        ["sessions", "show", "{}"],
        ["sessions", "history", "{}"],
        ["sessions", "resume-text", "{}"],
        ["sessions", "abort", "{}", "--reason", "enough"],
        ["sessions", "clean"],
        ["jobs", "get-stack"],
    ],
)
async def test_no_command_imports_fastmcp(three, run, command):
    result = run(*(part.format(three[2]) for part in command), options=["-X", "importtime"])
    assert result.returncode == 0, result.stderr
    assert "deepwork.project.project" in result.stderr
    assert "fastmcp" not in result.stderr
    assert "mcp" not in {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}


@pytest.mark.parametrize("arguments", [[], ["--json"], ["--status", "active"]], ids=["plain", "json", "active"])
async def test_a_list_without_models_is_the_list_of_the_store(project, monkeypatch, arguments):
    """Files as this release writes them are listed without the store; any variable of ours has it asked instead."""
    project.write_job()
    project.write("a.md")
    async with project.agent() as agent:
        for number in range(12):
            first_step = await agent.start()
            if number % 3 == 0:
                await agent.finish({"a.md": "a.md"}, session_id=first_step["session_id"])
            if number % 4 == 0:
                await agent.call("abort_workflow", explanation="enough", session_id=first_step["session_id"])

    def listed(**variables):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("DEEPWORK_")}
        command = [sys.executable, "-X", "importtime", "-m", "deepwork", "sessions", "list", *arguments]
        return subprocess.run(
            command, cwd=project.root, env={**inherited, **variables}, capture_output=True, text=True, check=True
        )

    quick, of_store = listed(), listed(DEEPWORK_NO_PLUGINS="none")
    ages = re.compile(r"\d+ (s|min)( ago)")
    assert ages.sub("0 s ago", quick.stdout) == ages.sub("0 s ago", of_store.stdout)
    assert "demo" in quick.stdout
    assert ("pydantic" in quick.stderr, "pydantic" in of_store.stderr) == (False, True)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda file: file.write_text('{"status": '),
        lambda file: file.rename(file.with_suffix(".json.20260101T000000.corrupt")),
    ],
    ids=["torn", "set aside"],
)
async def test_files_that_only_the_store_understands_are_left_to_it(project, spoil):
    from deepwork.project.heads import newest_heads

    project.write_job()
    async with project.agent() as agent:
        await agent.start()
        first_step = await agent.start()
    assert len(newest_heads(project.root, {}, status=None, limit=10)) == 2
    spoil(project.state / f"session_{first_step['session_id']}.json")
    assert newest_heads(project.root, {}, status=None, limit=10) is None
