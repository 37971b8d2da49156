"""The unlisted tool `hook`: what waits for an agent reaches it at its next call, once, and survives a killed server."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import pytest

from deepwork import hookimpl
from deepwork.api import NeedsWork, ReviewRunnerSpec, ToolSet, ToolSpec, project_at
from deepwork.errors import NameClash
from deepwork.ports.inbox import Answer, Answerer
from deepwork.testing import ScriptedRunner, review, step

sys.path.insert(0, str(Path(__file__).parent))
from windows import TOOL, Window

pytestmark = pytest.mark.anyio

PERSON = Answerer(user="ada", terminal="/dev/pts/0")


@pytest.fixture
async def agent(project):
    project.write_job()
    project.write("a.md")
    async with project.agent() as agent:
        yield agent


async def test_it_is_answered_and_in_no_list(agent):
    assert "hook" not in {tool.name for tool in await agent.client.list_tools()}
    assert await Window(agent).hook("PostToolUse", tool="Bash") == {}


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"event": 7, "session": []},
        {"event": "Nonsense", "session": "s"},
        {"event": "PostToolUse", "session": ""},
        {"event": "PostToolUse", "session": "s", "paths": "x", "arguments": "[", "response": '{"a": [' * 5000},
        {"event": "PostToolUse", "session": "s", "tool": "Write", "paths": ["a\x00b"]},
        {"event": "PostToolUse", "session": "${session_id}", "tool": "${tool_name}"},
    ],
)
async def test_wrong_arguments_are_answered_with_nothing_and_the_server_lives_on(agent, arguments):
    result = await agent.client.call_tool("hook", arguments, raise_on_error=False)
    assert result.is_error or result.content[0].text == "{}"
    assert await agent.call("get_workflows")


async def test_a_remark_reaches_every_client_session_of_the_session_once(agent, person):
    first, second, stranger = Window(agent), Window(agent), Window(agent)
    session_id = await first.start()
    await second.call("finished_step", session_id=session_id, step_id="?", outputs={})
    await person("say", session_id, "Leave the migrations alone\n[planted] line")
    for window in (first, second):
        text = await window.breathe()
        assert "Your user says about step 'a'" in text
        assert "\n| Leave the migrations alone\n| [planted] line" in text
        assert await window.breathe() == ""
    assert await stranger.breathe() == ""


async def test_equal_remarks_are_two(agent, person):
    window = Window(agent)
    session_id = await window.start()
    await person("say", session_id, "Hurry")
    await person("say", session_id, "Hurry")
    assert (await window.breathe()).count("| Hurry") == 2
    await person("say", session_id, "Hurry")
    assert (await window.breathe()).count("| Hurry") == 1


async def test_a_failed_tool_and_the_end_of_a_turn_bring_it_too(agent, person):
    window = Window(agent)
    session_id = await window.start()
    await person("say", session_id, "One")
    assert "| One" in await window.breathe(event="PostToolUseFailure")
    await person("say", session_id, "Two")
    answer = await window.hook("Stop", stop_hook_active="false")
    assert answer["decision"] == "block"
    assert "| Two" in answer["reason"]


async def test_in_a_turn_that_a_hook_has_caused_it_waits(agent, person):
    window = Window(agent)
    session_id = await window.start()
    await window.hook("Stop", stop_hook_active="false")
    await person("say", session_id, "Three")
    assert "Three" not in json.dumps(await window.hook("Stop", stop_hook_active="true"))
    assert "| Three" in await window.breathe()


async def test_what_a_reply_has_told_is_not_told_again(agent, person):
    window = Window(agent)
    session_id = await window.start()
    await person("say", session_id, "Leave the migrations alone")
    news, reply = await window.call("finished_step", session_id=session_id, step_id="?", outputs={})
    assert "Leave the migrations alone" in reply["feedback"]
    assert news == ""
    assert await window.breathe() == ""


class Judge:
    @hookimpl
    def deepwork_review_runners(self):
        yield ReviewRunnerSpec(name="judge", create=lambda: ScriptedRunner([NeedsWork("Not yet")]), max_inline_files=5)


@pytest.mark.parametrize("client", ["claudecode/toolUseId", "callId"], ids=["Claude Code", "Codex"])
async def test_a_call_that_names_no_session_is_joined_to_it_by_the_id_of_the_call(project, person, monkeypatch, client):
    """As after /clear: the client has a new session, and the server still has the old stack."""
    monkeypatch.setattr("deepwork.builtin.clients.news.RESULT_SECONDS", 0)
    project.write_job(steps=[step("a", reviews=[review()]), step("b")])
    project.write("a.md")
    async with project.agent(extra_plugins={"judge": Judge()}, external_runner="judge") as agent:
        before, after, stranger = Window(agent), Window(agent), Window(agent)
        session_id = await before.start()
        arguments = {"outputs": {"a.md": "a.md"}}
        reply = await agent.client.call_tool("finished_step", arguments, meta={client: "call-1"})
        assert reply.structured_content["status"] == "needs_work"
        response = json.dumps(reply.structured_content)
        assert session_id not in response
        assert await after.breathe(TOOL + "finished_step", call="call-1", response=response) == ""
        assert await stranger.breathe(TOOL + "finished_step", call="call-2", response=response) == ""
        assert await after.breathe() == ""
        await person("say", session_id, "Leave the migrations alone")
        assert "| Leave the migrations alone" in await after.breathe()
        assert await stranger.breathe() == ""


async def test_one_that_goes_on_with_a_session_hears_nothing_of_steps_that_are_done(agent, person):
    window, later = Window(agent), Window(agent)
    session_id = await window.start()
    await person("say", session_id, "About a")
    await window.call("finished_step", session_id=session_id, step_id="a", outputs={"a.md": "a.md"})
    news, _ = await later.call("finished_step", session_id=session_id, step_id="?", outputs={})
    assert news == ""
    assert await later.breathe() == ""


async def test_a_pause_is_told_and_so_is_its_end(agent, person):
    window = Window(agent)
    session_id = await window.start()
    await person("pause", session_id, "the plan changes")
    text = await window.breathe()
    assert "A person has paused this session: the plan changes; finish no step, wait." in text
    assert await window.hook("Stop", stop_hook_active="false") == {}  # it is not reminded of its step
    await person("unpause", session_id, "Leave b short")
    text = await window.breathe()
    assert "The pause is over" in text
    assert "| Leave b short" in text
    assert await window.breathe() == ""


async def test_a_pause_that_was_lifted_before_it_was_heard_is_not_told(agent, person):
    window = Window(agent)
    session_id = await window.start()
    await person("pause", session_id, "first")
    await person("unpause", session_id, None)
    assert await window.breathe() == ""
    await person("pause", session_id, "second")
    assert "second" in await window.breathe()


async def test_the_refusal_of_a_report_tells_of_the_pause_already(agent, person):
    window = Window(agent)
    session_id = await window.start()
    await person("pause", session_id, "the plan changes")
    news, refusal = await window.call("finished_step", session_id=session_id, step_id="a", outputs={"a.md": "a.md"})
    assert "A person has paused" in refusal
    assert news == ""


async def test_another_server_tells_again_what_nobody_has_confirmed_and_marks_it(agent, person, project):
    window = Window(agent)
    session_id = await window.start()
    await person("say", session_id, "First")
    first = await window.breathe()
    async with project.agent() as other_server:
        second = await window.on(other_server).breathe()
        assert ", again] " not in first
        assert second == first.replace("] Your user", ", again] Your user")
        assert await window.on(other_server).breathe() == ""
        await person("say", session_id, "Second")
        assert "First" not in await window.on(other_server).breathe()


async def test_what_was_confirmed_is_told_by_no_other_server(agent, person, project):
    window = Window(agent)
    session_id = await window.start()
    await person("say", session_id, "First")
    await window.breathe()
    await window.breathe()
    async with project.agent() as other_server:
        assert await window.on(other_server).breathe() == ""


async def test_a_sub_agent_hears_the_pauses_alone_and_takes_nothing_away(agent, person):
    window = Window(agent)
    session_id = await window.start()
    await person("say", session_id, "A remark")
    await person("pause", session_id, "the plan changes")
    helper = window.of("helper-1")
    text = await helper.breathe()
    assert "the plan changes" in text
    assert "A remark" not in text
    assert await helper.breathe() == ""
    text = await window.breathe()
    assert "the plan changes" in text
    assert "| A remark" in text
    await person("unpause", session_id, "Leave b short")
    text = await helper.breathe()
    assert "The pause is over" in text
    assert "Leave b short" not in text
    assert await helper.breathe() == ""


async def test_one_listener_never_confirms_for_another(agent, person, project):
    window = Window(agent)
    session_id = await window.start()
    await person("say", session_id, "A remark")
    await window.breathe()
    await window.of("helper-1").breathe()
    async with project.agent() as other_server:
        assert ", again] " in await window.on(other_server).breathe()


async def test_a_sub_agent_that_goes_on_with_a_session_hears_its_remarks(agent, person):
    window = Window(agent)
    session_id = await window.start()
    helper = window.of("helper-1")
    await helper.call("finished_step", session_id=session_id, step_id="?", outputs={})
    await person("say", session_id, "A remark")
    assert "| A remark" in await helper.breathe()
    assert "| A remark" in await window.breathe()


async def test_what_exceeds_the_quota_comes_next_and_nothing_of_it_is_lost(agent, person, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("deepwork.builtin.clients.deliveries.time.time", lambda: now[0])
    window = Window(agent)
    session_id = await window.start()
    for number in range(45):
        await person("say", session_id, f"Remark {number}.")
    heard = []
    for _ in range(6):
        text = await window.breathe()
        heard.append([number for number in range(45) if f"| Remark {number}." in text])
        now[0] += 31
    assert [len(numbers) for numbers in heard] == [20, 0, 20, 0, 5, 0]
    assert [number for numbers in heard for number in numbers] == [*range(45)]


async def test_long_remarks_fill_eight_thousand_characters_a_minute(agent, person, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("deepwork.builtin.clients.deliveries.time.time", lambda: now[0])
    window = Window(agent)
    session_id = await window.start()
    for _ in range(5):
        await person("say", session_id, "x\u2028" * 3000)
    sizes = []
    for _ in range(5):
        sizes.append(len(await window.breathe()))
        now[0] += 61
    assert all(0 < size <= 8000 for size in sizes)


async def test_both_are_told_once_of_a_file_that_two_client_sessions_have_changed(agent, project):
    first, second = Window(agent), Window(agent)
    project.write("src/x.py")
    (project.root / "link.py").symlink_to("src/x.py")
    edit = {"tool": "Edit", "paths": [str(project.root / "src/x.py"), ""]}
    assert await first.breathe(**edit) == ""
    news = await second.breathe(tool="Write", paths=["", "link.py"])
    for text, editor_of_file in ((news, first), (await first.breathe(), second)):
        assert str(project.root / "src/x.py") in text
        assert f"another session of claude, {editor_of_file.session[:12]}…" in text
        assert "since" in text
    for window in (first, second):
        assert await window.breathe(**edit) == ""
        assert await window.breathe() == ""


async def test_changes_elsewhere_earlier_read_or_failed_are_no_collision(agent, project, monkeypatch):
    first, second = Window(agent), Window(agent)
    edit = {"tool": "Edit", "paths": ["x.py"]}
    await first.breathe(**edit)
    assert await second.breathe(tool="Read", paths=["x.py"]) == ""
    assert await second.breathe(event="PostToolUseFailure", **edit) == ""
    assert await second.breathe(tool="Edit", paths=["y.py"]) == ""
    assert await first.of("helper-1").breathe(**edit) == ""  # of the same client session
    monkeypatch.setattr("deepwork.builtin.clients.collisions.time.time", lambda: 4e9)
    assert await second.breathe(**edit) == ""


async def test_a_patch_names_the_files_that_it_changes(agent):
    first, second = Window(agent), Window(agent)
    patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** Add File: b.py\n+z\n*** End Patch\n"
    await first.breathe(tool="apply_patch", arguments=json.dumps({"command": patch}))
    text = await second.breathe(tool="Write", paths=["b.py"])
    assert "b.py was changed by" in text


async def test_a_review_that_ended_without_its_caller_is_told(project, person, monkeypatch):
    """The call of the agent was cut off; another client session has had the step judged meanwhile."""
    project.write_job(steps=[step("a", reviews=[review()]), step("b")])
    project.write("a.md")
    monkeypatch.setattr("deepwork.builtin.clients.news.RESULT_SECONDS", 0)
    async with project.agent() as agent:
        window, second_window = Window(agent), Window(agent)
        session_id = await window.start()
        await second_window.call("finished_step", session_id=session_id, step_id="a", outputs={"a.md": "a.md"})
        await person("override", session_id, "a", "I have read it")
        for listener in (window, second_window):
            text = await listener.breathe()
            assert "Your user lets step 'a' of demo/main" in text
            assert "I have read it" in text
            assert await listener.breathe() == ""


async def test_after_a_start_and_a_compaction_it_says_what_is_open(agent):
    window = Window(agent)
    session_id = await window.start()
    answer = await window.hook("SessionStart")
    assert "# Resume demo/main" in answer["hookSpecificOutput"]["additionalContext"]
    assert session_id in answer["hookSpecificOutput"]["additionalContext"]


async def test_a_call_without_news_is_logged_at_debug_and_one_with_news_at_info(agent, person, caplog):
    caplog.set_level(logging.DEBUG, "deepwork.calls")
    window = Window(agent)
    session_id = await window.start()
    await person("say", session_id, "A remark")
    caplog.clear()
    await window.breathe()
    await window.breathe()
    assert [record.levelname for record in caplog.records if record.message.startswith("hook: ok")] == ["INFO", "DEBUG"]


async def test_a_full_disk_hands_over_nothing_and_loses_nothing(agent, person, monkeypatch):
    window = Window(agent)
    session_id = await window.start()
    await person("say", session_id, "A remark")
    with monkeypatch.context() as patch:

        def full(*_args, **_options):
            raise OSError(28, "No space left on device")

        patch.setattr("deepwork.paths.folder.Folder.replace", full)
        result = await agent.client.call_tool(
            "hook", {"event": "PostToolUse", "session": window.session, "tool": "Bash"}, raise_on_error=False
        )
        assert "A remark" not in result.content[0].text
        assert "Traceback" not in result.content[0].text
    assert "| A remark" in await window.breathe()


class Clashing:
    def __init__(self, prefix=None):
        self.prefix = prefix

    @hookimpl
    def deepwork_tool_sets(self):
        def hook() -> str:
            """Do something."""
            return ""

        yield ToolSet(name="acme", prefix=self.prefix, tools=[ToolSpec("hook", hook, title="Hook")])


def test_a_tool_of_a_plugin_with_its_name_is_a_clash_at_start_and_with_a_prefix_it_is_none(project):
    with pytest.raises(NameClash, match="tool name 'hook' is offered twice"):
        project.server(extra_plugins={"acme": Clashing()})
    assert project.server(extra_plugins={"acme": Clashing("acme_")})


async def test_what_a_reviewing_person_decides_and_says_reaches_the_agent_once(project):
    project.write_job(steps=[step("a", reviews=[review()]), step("b")])
    project.write("a.md", "One\nTwo\n")
    comments = [{"file": "a.md", "line": 2, "text": "Why two?", "must": True}]
    desk = project_at(project.root)
    async with project.agent(external_runner="person") as agent:
        window = Window(agent)
        session_id = await window.start()
        await window.call("finished_step", outputs={"a.md": "a.md"})
        assert await window.hook("Stop") == {}  # nobody reminds an agent of a step that waits for a person
        await desk.pieces().decide(session_id, "a", Answer("changes", "Not yet", comments=comments), PERSON)
        news = await window.breathe()
        assert "asks for changes of step 'a'" in news
        assert "| Not yet" in news
        assert "comments on a.md:2" in news
        assert "Why two?" in news
        assert await window.breathe() == ""
        news, reply = await window.call("finished_step", outputs={"a.md": "a.md"})
        assert [comment["id"] for comment in reply["comments"]] == ["c1"]
        assert news == ""
    await desk.close()


async def test_comments_that_a_report_has_told_are_not_told_at_the_next_breath(project):
    project.write_job(steps=[step("a", reviews=[review()]), step("b")])
    project.write("a.md", "One\nTwo\n")
    desk = project_at(project.root)
    async with project.agent(external_runner="person") as agent:
        window = Window(agent)
        session_id = await window.start()
        await window.call("finished_step", outputs={"a.md": "a.md"})
        comment = {"file": "a.md", "line": 2, "text": "Why two?"}
        await desk.pieces().decide(session_id, "a", Answer("changes", "Not yet", comments=[comment]), PERSON)
        news, reply = await window.call("finished_step", session_id=session_id, outputs={"a.md": "a.md"})
        assert [comment["text"] for comment in reply["comments"]] == ["Why two?"]
        assert (news, await window.breathe()) == ("", "")
    await desk.close()


async def test_the_end_of_a_workflow_is_told_once_to_those_who_have_not_ended_it(agent, project):
    mine, ending_window, stranger = Window(agent), Window(agent), Window(agent)
    session_id = await mine.start()
    await ending_window.call("finished_step", session_id=session_id, step_id="?", outputs={})
    news, _ = await ending_window.call("abort_workflow", explanation="The plan has changed", session_id=session_id)
    assert news == ""
    async with project.agent() as second:  # and on any server
        for window in (mine.on(second), ending_window, stranger):
            texts = [await window.breathe() for _ in range(2)]
            text = f"demo/main, session {session_id}, was ended before its end: The plan has changed ("
            assert [text in news for news in texts] == [window.session == mine.session, False]
