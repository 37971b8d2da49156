"""`deepwork inbox`: what waits for a person is listed, shown and answered, at a terminal and by programs."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from click.testing import CliRunner

from deepwork import hookimpl
from deepwork.api import (
    Answerer,
    ArgumentError,
    InboxAction,
    InboxContents,
    InboxItem,
    InboxSource,
    NeedsWork,
    Passed,
    PersonNeeded,
    RunnerError,
    RunnerUnavailable,
    UnknownItem,
    open_context,
)
from deepwork.api import at_terminal as terminal_user
from deepwork.cli.main import main
from deepwork.project.project import Project
from deepwork.testing import review, step

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}
PERSON = Answerer(terminal="/dev/pts/1")


async def failed(reviewed, judge, served, answer=None, calls=3):
    """Report a step until the agent is told to ask its user, and give the session's id."""
    async with reviewed.agent(served(judge(lambda _: answer or NeedsWork("Too short.\nNo sources.")))) as agent:
        session_id = (await agent.start())["session_id"]
        for _ in range(calls - 1):
            await agent.finish(DONE)
        if isinstance(answer, RunnerUnavailable):
            await agent.finish(DONE)
        else:
            await agent.refused("finished_step", outputs=DONE)
    return session_id


# What is listed


async def test_a_step_waits_once_its_last_attempt_has_failed(reviewed, judge, served, waiting):
    async with reviewed.agent(served(judge(lambda _: NeedsWork("Too short.")))) as agent:
        session_id = (await agent.start())["session_id"]
        await agent.finish(DONE)
        await agent.finish(DONE)
        assert await waiting() == {}
        await agent.refused("finished_step", outputs=DONE)
    item = (await waiting())["failed-gate"]
    assert item["id"] == f"sessions:{session_id}.a"
    assert item["what"] == "demo/main: step 'a' failed 3 reviews"
    assert "Too short." in item["detail"]
    assert item["reference"] == {"kind": "session", "id": session_id, "step_id": "a"}
    assert [action["name"] for action in item["actions"]] == ["override", "retry", "abort"]
    assert (item["principal"], item["held_by"], item["source"]) == ("local", None, "sessions")


async def test_a_step_does_not_wait_while_its_last_attempt_is_reviewed(reviewed, judge, served, waiting):
    runner = judge(lambda _: NeedsWork("Too short."))
    async with reviewed.agent(served(runner)) as agent, anyio.create_task_group() as tasks:
        await agent.start()
        for _ in range(2):
            await agent.finish(DONE)
        runner.hold, runner.asked = True, anyio.Event()
        reviewed.write("a.md", "Other work\n")

        async def last():
            await agent.refused("finished_step", outputs=DONE)

        tasks.start_soon(last)
        await runner.asked.wait()
        assert await waiting() == {}
        runner.release.set()
    assert list(await waiting()) == ["failed-gate"]


@pytest.mark.parametrize(("limit", "waits"), [(2, True), (5, False)])
async def test_the_limit_of_the_server_counts_for_everybody_who_looks(
    reviewed, judge, served, waiting, deepwork, limit, waits
):
    async with reviewed.agent(served(judge(lambda _: NeedsWork("No.")), quality_gate_max_attempts=limit)) as agent:
        await agent.start()
        for number in (1, 2):
            reviewed.write("a.md", f"version {number}")
            await (agent.refused if number == limit else agent.call)("finished_step", outputs=DONE)
        reviewed.write("a.md", "version 3")
        if limit == 5:
            await agent.finish(DONE)
    [shown] = json.loads(await deepwork("status", "--json"))["sessions"]
    listed = await deepwork("sessions", "list")
    assert ("failed-gate" in await waiting(), shown["waits_for_person"]) == (waits, waits)
    assert ("waits for a person" in listed) is waits


async def test_a_session_waits_as_soon_as_one_member_of_its_group_does(project, judge, served, waiting, deepwork):
    project.write_job(steps=[step("a"), step("b", reviews=[review()])], workflows={"main": [["a", "b"]]})
    project.write("b.md")
    async with project.agent(served(judge(lambda _: NeedsWork("No.")), quality_gate_max_attempts=1)) as agent:
        begun = await agent.start()
        report = {"session_id": begun["session_id"], "step_id": "b", "outputs": {"b.md": "b.md"}}
        await agent.refused("finished_step", **report)
    assert (await waiting())["failed-gate"]["reference"]["step_id"] == "b"
    assert json.loads(await deepwork("status", "--json"))["sessions"][0]["waits_for_person"] is True


async def test_a_new_failure_of_the_same_step_is_a_new_state(reviewed, judge, served, waiting):
    async with reviewed.agent(served(judge(lambda _: NeedsWork("Too short.")))) as agent:
        await agent.start()
        for _ in range(2):
            await agent.finish(DONE)
        await agent.refused("finished_step", outputs=DONE)
        first = (await waiting())["failed-gate"]
        reviewed.write("a.md", "Other work\n")
        await agent.refused("finished_step", outputs=DONE)
    second = (await waiting())["failed-gate"]
    assert (first["id"], second["what"]) == (second["id"], "demo/main: step 'a' failed 4 reviews")
    assert first["state"] != second["state"]


async def test_a_step_waits_when_reviewers_gave_no_verdict_three_times(reviewed, judge, served, waiting):
    await failed(reviewed, judge, served, RunnerError("the model is overloaded"))
    item = (await waiting())["no-verdict"]
    assert item["what"] == "demo/main: step 'a' got no verdict in 3 calls"
    assert "the model is overloaded" in item["detail"]


async def test_a_step_waits_at_once_for_a_reviewer_that_only_the_user_can_fix(reviewed, judge, served, waiting):
    await failed(reviewed, judge, served, RunnerUnavailable("Claude is not logged in"), calls=1)
    item = (await waiting())["runner"]
    assert "Claude is not logged in" in item["detail"]


async def test_an_override_that_a_strict_gate_asks_a_person_for_waits(
    reviewed, judge, served, user_config, waiting, history
):
    user_config("quality_gate: {strict: true}\n")
    async with reviewed.agent(served(judge(lambda _: Passed()))) as agent:
        await agent.start()
        for _ in range(2):  # asking again is no second request
            await agent.refused("finished_step", outputs=DONE, quality_review_override_reason="It is only a draft")
        assert history("override_asked") == [{"reason": "It is only a draft"}]
        items = await waiting()
        assert items["override"]["what"] == "demo/main: step 'a' asks to pass without a review"
        assert "It is only a draft" in items["override"]["detail"]
        assert (await agent.finish(DONE))["status"] == "next_step"
    assert "override" not in await waiting()


async def test_a_damaged_session_waits(project, waiting, deepwork):
    project.write_job()
    async with project.agent() as agent:
        session_id = (await agent.start())["session_id"]
    project.write(f".deepwork/tmp/session_{session_id}.json", "{")
    item = (await waiting())["damaged-session"]
    assert session_id in item["what"]
    assert item["since"].startswith("20")


async def test_a_reviewer_whose_program_is_missing_waits_for_the_user(project, user_config, waiting):
    user_config("quality_gate: {runner: mine, commands: {mine: {run: [no-such-reviewer]}}}\n")
    item = (await waiting())["reviewer"]
    assert "no-such-reviewer" in item["what"]
    assert item["actions"] == []


async def test_settings_that_wait_for_trust_wait_for_the_user(project, waiting):
    project.write(".deepwork/config.yml", "allowed_output_roots: [/srv/reports]\n")
    item = (await waiting())["trust"]
    assert "allowed_output_roots" in item["detail"]


# Answers


async def test_an_override_at_a_terminal_lets_the_step_pass_and_is_recorded(
    reviewed, judge, served, waiting, at_terminal, history, deepwork
):
    session_id = await failed(reviewed, judge, served)
    answer = ("inbox", "answer", f"sessions:{session_id[:8]}", "override")
    text = await deepwork(*answer, "--text", "I have read it", code=1)
    assert "Only a person may answer what waits in the inbox" in text
    assert "failed-gate" in await waiting()
    shown, code = await at_terminal(*answer, "--text", "I have read it")
    assert (code, shown.strip()) == (
        0,
        "Step 'a' of demo/main passes without a review when the agent reports it next",
    )
    assert await waiting() == {}
    [permission] = history("override")
    assert (permission["by"], permission["reason"], permission["client"]) == ("person", "I have read it", None)
    assert permission["terminal"].startswith("/dev/")
    async with reviewed.agent(served(judge(lambda _: NeedsWork("no")))) as agent:
        assert (await agent.finish(DONE, session_id=session_id))["status"] == "next_step"


async def test_the_reason_is_asked_for_at_a_terminal(reviewed, judge, served, at_terminal, history):
    session_id = await failed(reviewed, judge, served)
    shown, code = await at_terminal("inbox", "answer", session_id[:6], "override", typed=b"I have read it\n")
    assert (code, "Reason: " in shown) == (0, True)
    assert history("override")[0]["reason"] == "I have read it"


async def test_retry_begins_the_step_again_with_all_its_attempts(reviewed, judge, served, waiting, at_terminal, stored):
    session_id = await failed(reviewed, judge, served)
    assert (await at_terminal("inbox", "answer", session_id, "retry", "--text", "The data are there now"))[1] == 0
    assert await waiting() == {}
    assert stored()["step_progress"]["a"]["quality_attempts"] == 0


async def test_abort_ends_the_workflow(reviewed, judge, served, waiting, at_terminal, stored):
    session_id = await failed(reviewed, judge, served)
    text, _ = await at_terminal("inbox", "answer", session_id, "abort", "--text", "Nobody needs it", "--json")
    assert json.loads(text)["result"] == f"demo/main, session {session_id}, is aborted"
    assert (stored()["status"], stored()["abort_reason"]) == ("aborted", "Nobody needs it")
    assert await waiting() == {}


@pytest.mark.parametrize("action", ["override", "retry", "abort"])
async def test_without_a_terminal_nothing_that_waits_is_answered(
    reviewed, judge, served, waiting, deepwork, history, action
):
    session_id = await failed(reviewed, judge, served)
    text = await deepwork("inbox", "answer", session_id, action, "--text", "fine", code=1)
    assert "Only a person may answer what waits in the inbox" in text
    assert "`deepwork dashboard --open`" in text
    assert "failed-gate" in await waiting()
    assert history("override") == history("reopened") == []


async def test_without_a_terminal_no_failed_step_gets_its_attempts_again(
    reviewed, judge, served, deepwork, at_terminal, stored
):
    session_id = await failed(reviewed, judge, served)
    for words in (("reopen", session_id, "a"), ("undo", session_id)):
        assert "Only a person may" in await deepwork("sessions", *words, "--reason", "again", code=1)
    assert stored()["step_progress"]["a"]["quality_attempts"] == 3
    assert (await at_terminal("sessions", "reopen", session_id, "a", "--reason", "again"))[1] == 0
    assert stored()["step_progress"]["a"]["quality_attempts"] == 0


async def test_what_cannot_be_answered_is_told_with_what_can(reviewed, judge, served, at_terminal):
    session_id = await failed(reviewed, judge, served)

    async def refused(*words):
        shown, code = await at_terminal("inbox", "answer", *words)
        assert code == 1
        return " ".join(shown.split())

    assert "Nothing waits under the id 'nope'" in await refused("nope", "abort")
    assert "did you mean 'retry'?" in await refused(session_id, "retri")
    assert "'retry' needs a text, the note to the agent" in await refused(session_id, "retry", "--text", " ")


async def test_a_beginning_of_several_ids_is_refused_with_the_ids(project, judge, served, at_terminal):
    project.write_job(steps=[step("a", reviews=[review()])])
    project.write("a.md")
    first = await failed(project, judge, served)
    second = await failed(project, judge, served)
    text, code = await at_terminal("inbox", "answer", "sessions:", "abort", "--text", "x")
    assert code == 1
    assert "is the beginning of 2 ids" in text
    assert first in text
    assert second in text


# How it is shown


async def test_the_list_fits_terminals_of_eighty_and_of_forty_columns(reviewed, judge, served, at_terminal):
    session_id = await failed(reviewed, judge, served)
    for columns in (80, 40):
        shown, code = await at_terminal("inbox", columns=columns)
        assert code == 0
        lines = shown.splitlines()[:-2]
        assert max(map(len, lines)) <= columns + len("\x1b[1m\x1b[0m")
        assert f"sessions:{session_id[:8]}" in shown
        assert "failed 3 reviews" in " ".join(shown.split())
        assert "override --text REASON" in " ".join(shown.split())


async def test_show_gives_all_of_one_item_with_the_commands_that_answer_it(reviewed, judge, served, deepwork):
    session_id = await failed(reviewed, judge, served)
    text = await deepwork("inbox", "show", session_id[:6])
    assert f"deepwork inbox answer sessions:{session_id}.a override --text 'REASON'" in text
    assert "No sources." in text


async def test_nothing_waits(project, deepwork):
    assert await deepwork("inbox") == "Nothing waits for a person.\n"
    assert json.loads(await deepwork("inbox", "--json")) == {"items": [], "failures": [], "more": 0}


async def test_status_counts_what_waits(reviewed, judge, served, deepwork):
    assert json.loads(await deepwork("status", "--json"))["inbox"] == {"count": 0}
    await failed(reviewed, judge, served)
    assert "1 thing waits for a person: deepwork inbox" in await deepwork("status")
    assert json.loads(await deepwork("status", "--json"))["inbox"] == {"count": 1}
    assert "demo/main @ a (waits for you)" in await deepwork("status", "--statusline")


async def test_watching_shows_what_comes_and_goes_until_ctrl_c(reviewed, judge, served, at_terminal):
    command = [sys.executable, "-m", "deepwork", "inbox", "--watch", "--path", str(reviewed.root)]
    primary, secondary = pty.openpty()
    tty = {"stdin": secondary, "stdout": secondary, "stderr": secondary}
    async with await anyio.open_process(command, **tty, start_new_session=True) as process:
        os.close(secondary)
        screen = Screen(primary)
        await screen.shows("0 things wait")
        session_id = await failed(reviewed, judge, served)
        await screen.shows(f"sessions:{session_id[:8]}")
        await at_terminal("inbox", "answer", session_id, "abort", "--text", "Nobody needs it")
        await screen.shows("0 things wait")
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0
    os.close(primary)


class Screen:
    """What a terminal was sent since the last look."""

    def __init__(self, descriptor):
        self._descriptor = descriptor

    async def shows(self, text):
        shown = ""
        with anyio.fail_after(240):
            while text not in shown:
                await anyio.wait_readable(self._descriptor)
                shown += os.read(self._descriptor, 65536).decode()


async def test_watching_as_json_prints_a_line_for_each_change(reviewed, judge, served):
    command = [sys.executable, "-m", "deepwork", "inbox", "--watch", "--json", "--path", str(reviewed.root)]
    async with await anyio.open_process(command, stderr=None) as process:
        lines = BufferedByteReceiveStream(process.stdout)
        with anyio.fail_after(240):
            assert json.loads(await lines.receive_until(b"\n", 100_000))["items"] == []
            session_id = await failed(reviewed, judge, served)
            [item] = json.loads(await lines.receive_until(b"\n", 100_000))["items"]
        assert item["id"] == f"sessions:{session_id}.a"
        process.terminate()
        assert await process.wait() == 0


async def test_ids_and_actions_are_completed(reviewed, judge, served, deepwork, monkeypatch):
    session_id = await failed(reviewed, judge, served)
    monkeypatch.chdir(reviewed.root)
    completed = {
        **os.environ,
        "_DEEPWORK_COMPLETE": "bash_complete",
        "COMP_WORDS": "deepwork inbox answer ",
        "COMP_CWORD": "3",
    }

    def complete(words, number):
        environment = {**completed, "COMP_WORDS": words, "COMP_CWORD": str(number)}
        code = "from deepwork.cli.main import main; main(prog_name='deepwork')"
        return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True).stdout

    assert f"plain,sessions:{session_id}.a" in complete("deepwork inbox answer ", 3)
    actions = complete(f"deepwork inbox answer sessions:{session_id}.a ", 4).split()
    assert actions == ["plain,override", "plain,retry", "plain,abort"]


# Sources of plugins


class Source(InboxSource):
    def __init__(self, items):
        self._items = items
        self.answers = []

    async def items(self):
        if isinstance(self._items, Exception):
            raise self._items
        return self._items

    async def answer(self, item_id, action, text, by):
        self.answers.append((item_id, action, text, by.principal))
        return f"{action} done"

    async def answer_task(self, item_id, action, task_id, text, by):
        self.answers.append((item_id, action, task_id, text))
        return f"{action} of {task_id} done"


def question(**more):
    reply = InboxAction(name="reply", label="Reply", text="reply")
    values = {"id": "1", "kind": "question", "what": "Which?", "since": "2026-01-01T00:00:00+00:00", "state": "asked"}
    return InboxItem(**{**values, "actions": (reply,), **more})


@pytest.fixture
def inbox_of(project):
    """Make the inbox of a project with plugins that have these sources."""

    def make(**sources):
        def plugin(source):
            class Plugin:
                @hookimpl
                def deepwork_inbox(self):
                    if isinstance(source, type):
                        raise source
                    yield source

            return Plugin()

        plugins = {name: plugin(source) for name, source in sources.items()}
        return Project(project.root, plugins=project._plugins(plugins)).inbox

    return make


def about_tasks(**tasks):
    return question(actions=(InboxAction(name="retry", label="Try again", tasks=tasks),))


async def test_an_answer_is_about_one_of_the_tasks_of_an_action(inbox_of):
    """Of several the answer names one that there is; a single one need not be named; else none may be."""
    several, single = Source([about_tasks(t1="a", t2="b")]), Source([about_tasks(t1="a")])
    plain = Source([question()])
    inbox = inbox_of(several=several, single=single, plain=plain)
    assert await inbox.answer("several:1", "retry", None, PERSON, task="t2") == "retry of t2 done"
    assert await inbox.answer("single:1", "retry", None, PERSON) == "retry of t1 done"
    refusals = {("several", "retry", None): "can be about 2 tasks.*t2 \\(b\\)", ("single", "retry", "t9"): "'t9'"}
    for (name, action, task), text in (refusals | {("plain", "reply", "t1"): "takes no task"}).items():
        with pytest.raises(ArgumentError, match=text):
            await inbox.answer(f"{name}:1", action, "text", PERSON, task=task)
    assert (len(several.answers), len(single.answers), plain.answers) == (1, 1, [])


@pytest.mark.parametrize(
    ("arguments", "typed", "asked"), [(["--task", "t2"], "", False), ([], "t2\n", True), ([], "t9\nt2\n", True)]
)
def test_a_terminal_names_the_task_or_is_asked_for_it(project, inbox_of, monkeypatch, arguments, typed, asked):
    source = Source([about_tasks(t1="build", t2="release")])
    inbox_of_source = inbox_of(plan=source)

    class ProjectOfSource(Project):
        inbox = inbox_of_source

    monkeypatch.setattr("deepwork.cli.inbox.Project", ProjectOfSource)
    monkeypatch.setattr("deepwork.cli.inbox.at_terminal", lambda: PERSON)
    monkeypatch.chdir(project.root)
    listed = CliRunner().invoke(main, ["inbox"])
    assert "-> retry --task ID" in listed.output
    answered = CliRunner().invoke(main, ["inbox", "answer", "plan:1", "retry", *arguments], input=typed)
    assert (answered.exit_code, "t2  release" in answered.stderr) == (0, asked), answered.output
    assert answered.stdout == "retry of t2 done\n"
    assert source.answers == [("1", "retry", "t2", None)]


async def test_a_source_whose_tasks_are_no_ids_with_names_is_named(inbox_of):
    contents = await inbox_of(wrong=Source([about_tasks(t1=1)])).items(PERSON)
    assert (contents.items, "not ids with names" in contents.failures[0].error) == ((), True)


async def test_a_source_that_fails_hides_no_other(inbox_of, monkeypatch):
    class Hanging(Source):
        async def items(self):
            await anyio.sleep_forever()

    monkeypatch.setattr("deepwork.project.inbox.SECONDS", 0.2)
    inbox = inbox_of(
        good=Source([question()]),
        broken=Source(RuntimeError("no database")),
        wrong=Source(["text"]),
        hanging=Hanging([]),
        declared=ValueError,
        twice=Source([question(), question()]),
        textless=Source([question(what=None)]),
        urgent=Source([question(urgency="very")]),
    )
    contents = await inbox.items(Answerer())
    assert [item.id for item in contents.items] == ["good:1"]
    errors = {failure.source: failure.error for failure in contents.failures}
    assert sorted(errors) == ["broken", "declared", "hanging", "textless", "twice", "urgent", "wrong"]
    assert "no database" in errors["broken"]
    assert "did not answer within 0.2 s" in errors["hanging"]
    assert await inbox.answer("good:1", "reply", "Green", PERSON) == "reply done"


async def test_a_long_list_is_cut_after_what_is_urgent_and_what_is_old_and_the_rest_is_counted(inbox_of):
    items = [question(id=f"{number}", since=f"2026-01-01T00:00:00.{number:04}+00:00") for number in range(1500)]
    inbox = inbox_of(acme=Source([*reversed(items), question(id="urgent", since="2026-02-01T00:00:00", urgency=2)]))
    contents = await inbox.items(Answerer())
    assert contents.failures == ()
    assert [item.id for item in contents.items] == ["acme:urgent", *(f"acme:{number}" for number in range(999))]
    assert (contents.more, contents.total) == (501, 1501)


async def test_a_flood_of_one_principal_leaves_the_lists_of_others_as_they_are(inbox_of):
    flood = [question(id=f"bob{number}", principal="bob") for number in range(1001)]
    late = question(id="alice", principal="alice", since="2026-02-01T00:00:00+00:00")
    inbox = inbox_of(acme=Source([*flood, late]))
    alice = await inbox.items(Answerer(principal="alice"))
    assert ([item.id for item in alice.items], alice.more) == (["acme:alice"], 0)
    whole = await inbox.items(Answerer())
    assert (whole.items[-1].id, whole.more) == ("acme:alice", 2)


async def test_a_flood_of_one_agent_does_not_push_out_what_another_asks(inbox_of):
    flood = [question(id=f"{number}", who="loud") for number in range(1200)]
    late = [question(id=f"q{number}", who="quiet", since=f"2026-02-0{number}T00:00:00") for number in (1, 2)]
    contents = await inbox_of(acme=Source([*flood, *late])).items(Answerer())
    assert [item.id for item in contents.items[-2:]] == ["acme:q1", "acme:q2"]
    assert (len(contents.items), contents.more) == (1000, 202)


async def test_what_is_not_listed_yet_can_be_answered_and_is_counted_by_its_source(inbox_of):
    source = Source([question(id=f"{number:04}") for number in range(1001)])
    inbox = inbox_of(acme=source, beta=Source(InboxContents(items=(question(),), more=7)))
    contents = await inbox.items(Answerer())
    assert (contents.total, contents.more) == (1009, 8)
    assert await inbox.answer("acme:1000", "reply", "Green", PERSON) == "reply done"
    with pytest.raises(UnknownItem) as error:
        await inbox.answer("beta:2", "reply", "Green", PERSON)
    assert "7 more wait that are not listed yet" in error.value.hint


def test_commands_say_how_many_more_wait(project, inbox_of, monkeypatch):
    monkeypatch.setattr(Project, "inbox", inbox_of(acme=Source(InboxContents(items=(question(),), more=1234))))

    def deepwork(*arguments):
        ended = CliRunner().invoke(main, [*arguments, "--path", str(project.root)])
        assert ended.exit_code == 0, ended.output
        return ended.stdout

    assert "\nand 1,234 more, which are listed when these are answered\n" in deepwork("inbox")
    contents = json.loads(deepwork("inbox", "--json"))
    assert (len(contents["items"]), contents["more"]) == (1, 1234)
    assert "1,235 things wait for a person" in deepwork("status")
    assert json.loads(deepwork("status", "--json"))["inbox"] == {"count": 1235}


async def test_a_source_that_waits_in_a_thread_holds_up_nobody_and_is_not_asked_twice(inbox_of, monkeypatch):
    asked, release = [], threading.Event()

    class Waiting(Source):
        async def items(self):
            asked.append(1)
            await anyio.to_thread.run_sync(release.wait, 30)
            return await super().items()

    monkeypatch.setattr("deepwork.project.inbox.SECONDS", 0.2)
    inbox = inbox_of(good=Source([question()]), waiting=Waiting([question()]))
    for _ in range(3):
        contents = await inbox.items(Answerer())
        assert [item.id for item in contents.items] == ["good:1"]
        assert "did not answer within 0.2 s" in contents.failures[0].error
    assert len(asked) == 1
    release.set()
    with anyio.fail_after(240):
        while len((await inbox.items(Answerer())).items) < 2:  # noqa: ASYNC110 - asked again, as pages do
            await anyio.sleep(0.05)
    await inbox.close()


async def test_a_plugin_has_one_source_and_no_name_of_the_core(project):
    class Two:
        @hookimpl
        def deepwork_inbox(self):
            yield Source([question()])
            yield Source([question(id="2")])

    class Sessions:
        @hookimpl
        def deepwork_inbox(self):
            yield Source([question()])

    plugins = project._plugins({"acme": Two(), "sessions": Sessions()})
    contents = await Project(project.root, plugins=plugins).inbox.items(Answerer())
    assert [item.id for item in contents.items] == ["acme:1"]
    assert [failure.source for failure in contents.failures] == ["acme", "sessions"]


async def test_a_session_is_seen_and_answered_by_its_principal_alone(inbox_of):
    source = Source([question(principal="ada"), question(id="2")])
    inbox = inbox_of(acme=source)
    ada, bob = Answerer(principal="ada", client="page"), Answerer(principal="bob", client="page")
    assert [item.id for item in (await inbox.items(ada)).items] == ["acme:1", "acme:2"]
    assert [item.id for item in (await inbox.items(bob)).items] == ["acme:2"]
    with pytest.raises(UnknownItem):
        await inbox.answer("acme:1", "reply", "Green", bob)
    await inbox.answer("acme:1", "reply", "Green", ada)
    assert source.answers == [("1", "reply", "Green", "ada")]


async def test_an_item_that_has_changed_since_it_was_seen_is_not_answered(inbox_of):
    source = Source([question(state="second")])
    inbox = inbox_of(acme=source)
    with pytest.raises(ArgumentError, match="has changed since"):
        await inbox.answer("acme:1", "reply", "Green", PERSON, state="first")
    await inbox.answer("acme:1", "reply", "Green", PERSON, state="second")
    assert len(source.answers) == 1


async def test_an_answer_to_a_source_of_a_plugin_needs_a_person_too(inbox_of):
    source = Source([question()])
    with pytest.raises(PersonNeeded, match="nothing was changed"):
        await inbox_of(acme=source).answer("acme:1", "reply", "Green", Answerer(principal="ada", user="ada"))
    assert source.answers == []


def test_a_terminal_of_another_user_is_no_evidence_of_a_person(monkeypatch):
    """Root may use any terminal; others use their own."""
    primary, secondary = pty.openpty()
    with open(primary, "rb"), open(secondary) as terminal:
        owner = os.fstat(secondary).st_uid
        monkeypatch.setattr(sys, "stdin", terminal)
        monkeypatch.setattr(sys, "stderr", terminal)
        for user, is_person in ((owner, True), (0, True), (owner + 12345, False)):
            monkeypatch.setattr(os, "getuid", lambda user=user: user)
            assert terminal_user().is_person is is_person


async def test_long_and_hostile_texts_are_shortened_and_made_visible(inbox_of):
    inbox = inbox_of(acme=Source([question(what="a\x1b[31m\n" * 1000, detail="d" * 100_000)]))
    [item] = (await inbox.items(Answerer())).items
    assert "\x1b" not in item.what
    assert "\n" not in item.what
    assert (len(item.what) <= 200, len(item.detail)) == (True, 4000)


async def test_a_plugin_finds_the_whole_inbox_in_its_context(project, inbox_of, reviewed, judge, served):
    session_id = await failed(reviewed, judge, served)
    async with open_context("acme", project.root) as context:
        inbox = context.inbox()
        assert [item.id for item in (await inbox.items(Answerer(principal="local"))).items] == [
            f"sessions:{session_id}.a"
        ]
        assert (await inbox.items(Answerer(principal="somebody"))).items == ()
