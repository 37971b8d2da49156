"""`deepwork inbox`: what waits is shown and answered, at a terminal and by programs."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from deepwork.api import Answerer, NeedsWork, open_context
from deepwork.testing import review, step

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}


# Answers


async def test_an_override_at_a_terminal_lets_the_step_pass_and_is_recorded(
    reviewed, failed, judge, served, waiting, at_terminal, history, deepwork
):
    session_id = await failed(reviewed)
    answer = ("inbox", "answer", f"sessions:{session_id[:8]}", "override")
    text = await deepwork(*answer, "--text", "I have read it", code=1)
    assert "Only a person may answer what waits in the inbox" in text
    assert "failed-gate" in await waiting()
    output, code = await at_terminal(*answer, "--text", "I have read it")
    assert (code, output.strip()) == (
        0,
        "Step 'a' of demo/main passes without a review when the agent reports it next",
    )
    assert await waiting() == {}
    [permission] = history("override")
    assert (permission["by"], permission["reason"], permission["client"]) == ("person", "I have read it", None)
    assert permission["terminal"].startswith("/dev/")
    async with reviewed.agent(served(judge(lambda _: NeedsWork("no")))) as agent:
        assert (await agent.finish(DONE, session_id=session_id))["status"] == "next_step"


async def test_the_reason_is_asked_for_at_a_terminal(reviewed, failed, at_terminal, history):
    session_id = await failed(reviewed)
    output, code = await at_terminal("inbox", "answer", session_id[:6], "override", typed=b"I have read it\n")
    assert (code, "Reason: " in output) == (0, True)
    assert history("override")[0]["reason"] == "I have read it"


async def test_retry_begins_the_step_again_with_all_its_attempts(reviewed, failed, waiting, at_terminal, stored):
    session_id = await failed(reviewed)
    assert (await at_terminal("inbox", "answer", session_id, "retry", "--text", "The data are there now"))[1] == 0
    assert await waiting() == {}
    assert stored()["step_progress"]["a"]["quality_attempts"] == 0


async def test_abort_ends_the_workflow(reviewed, failed, waiting, at_terminal, stored):
    session_id = await failed(reviewed)
    text, _ = await at_terminal("inbox", "answer", session_id, "abort", "--text", "Nobody needs it", "--json")
    assert json.loads(text)["result"] == f"demo/main, session {session_id}, is aborted"
    assert (stored()["status"], stored()["abort_reason"]) == ("aborted", "Nobody needs it")
    assert await waiting() == {}


@pytest.mark.parametrize("action", ["override", "retry", "abort"])
async def test_without_a_terminal_nothing_that_waits_is_answered(reviewed, failed, waiting, deepwork, history, action):
    session_id = await failed(reviewed)
    text = await deepwork("inbox", "answer", session_id, action, "--text", "fine", code=1)
    assert "Only a person may answer what waits in the inbox" in text
    assert "`deepwork dashboard --open`" in text
    assert "failed-gate" in await waiting()
    assert history("override") == history("reopened") == []


async def test_without_a_terminal_no_failed_step_gets_its_attempts_again(
    reviewed, failed, deepwork, at_terminal, stored
):
    session_id = await failed(reviewed)
    for words in (("reopen", session_id, "a"), ("undo", session_id)):
        assert "Only a person may" in await deepwork("sessions", *words, "--reason", "again", code=1)
    assert stored()["step_progress"]["a"]["quality_attempts"] == 3
    assert (await at_terminal("sessions", "reopen", session_id, "a", "--reason", "again"))[1] == 0
    assert stored()["step_progress"]["a"]["quality_attempts"] == 0


async def test_what_cannot_be_answered_is_told_with_what_can(reviewed, failed, at_terminal):
    session_id = await failed(reviewed)

    async def refused(*words):
        output, code = await at_terminal("inbox", "answer", *words)
        assert code == 1
        return " ".join(output.split())

    assert "Nothing waits under the id 'nope'" in await refused("nope", "abort")
    assert "did you mean 'retry'?" in await refused(session_id, "retri")
    assert "'retry' needs a text, the note to the agent" in await refused(session_id, "retry", "--text", " ")


async def test_a_beginning_of_several_ids_is_refused_with_the_ids(project, failed, at_terminal):
    project.write_job(steps=[step("a", reviews=[review()])])
    project.write("a.md")
    first = await failed(project)
    second = await failed(project)
    text, code = await at_terminal("inbox", "answer", "sessions:", "abort", "--text", "x")
    assert code == 1
    assert "is the beginning of 2 ids" in text
    assert first in text
    assert second in text


# How it is shown


async def test_the_list_fits_terminals_of_eighty_and_of_forty_columns(reviewed, failed, at_terminal):
    session_id = await failed(reviewed)
    for columns in (80, 40):
        output, code = await at_terminal("inbox", columns=columns)
        assert code == 0
        lines = output.splitlines()[:-2]
        assert max(map(len, lines)) <= columns + len("\x1b[1m\x1b[0m")
        assert f"sessions:{session_id[:8]}" in output
        assert "needs work after 3 reviews" in " ".join(output.split())
        assert "override --text REASON" in " ".join(output.split())


async def test_show_gives_all_of_one_item_with_the_commands_that_answer_it(reviewed, failed, deepwork):
    session_id = await failed(reviewed)
    text = await deepwork("inbox", "show", session_id[:6])
    assert f"deepwork inbox answer sessions:{session_id}.a override --text 'REASON'" in text
    assert "No sources." in text


async def test_nothing_waits(project, deepwork):
    assert await deepwork("inbox") == "Nothing waits for a person.\n"
    assert json.loads(await deepwork("inbox", "--json")) == {"items": [], "failures": [], "more": 0}


async def test_what_cannot_be_asked_may_wait_nevertheless(project, deepwork, monkeypatch):
    plugin = """
from deepwork import hookimpl

@hookimpl
def deepwork_inbox(context):
    raise RuntimeError("it is away")
"""
    monkeypatch.setenv("DEEPWORK_PLUGINS_DIR", str(project.write("plugins/acme.py", plugin).parent))
    printed = await deepwork("inbox")
    assert "Note: acme cannot say what waits" in printed
    assert printed.endswith("Nothing waits for a person, as far as the others can say.\n")


async def test_status_counts_what_waits(reviewed, failed, deepwork):
    assert json.loads(await deepwork("status", "--json"))["inbox"] == {"count": 0}
    await failed(reviewed)
    assert "1 thing waits for a person: deepwork inbox" in await deepwork("status")
    assert json.loads(await deepwork("status", "--json"))["inbox"] == {"count": 1}
    assert "demo/main @ a (needs work; waits for you)" in await deepwork("status", "--statusline")


async def test_watching_shows_what_comes_and_goes_until_ctrl_c(reviewed, failed, at_terminal):
    command = [sys.executable, "-m", "deepwork", "inbox", "--watch", "--path", str(reviewed.root)]
    primary, secondary = pty.openpty()
    tty = {"stdin": secondary, "stdout": secondary, "stderr": secondary}
    async with await anyio.open_process(command, **tty, start_new_session=True) as process:
        os.close(secondary)
        screen = Screen(primary)
        await screen.shows("0 things wait")
        session_id = await failed(reviewed)
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
        self._content = b""

    async def shows(self, text):
        with anyio.fail_after(240):
            while text.encode() not in self._content:
                await anyio.wait_readable(self._descriptor)
                self._content += os.read(self._descriptor, 65536)
        self._content = self._content.partition(text.encode())[2]


async def test_watching_as_json_prints_a_line_for_each_change(reviewed, failed):
    command = [sys.executable, "-m", "deepwork", "inbox", "--watch", "--json", "--path", str(reviewed.root)]
    async with await anyio.open_process(command, stderr=None) as process:
        lines = BufferedByteReceiveStream(process.stdout)
        with anyio.fail_after(240):
            assert json.loads(await lines.receive_until(b"\n", 100_000))["items"] == []
            session_id = await failed(reviewed)
            [item] = json.loads(await lines.receive_until(b"\n", 100_000))["items"]
        assert item["id"] == f"sessions:{session_id}.a"
        process.terminate()
        assert await process.wait() == 0


async def test_ids_and_actions_are_completed(reviewed, failed, deepwork, monkeypatch):
    session_id = await failed(reviewed)
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


async def test_a_plugin_finds_the_whole_inbox_in_its_context(project, failed, reviewed):
    session_id = await failed(reviewed)
    async with open_context("acme", project.root) as context:
        inbox = context.inbox()
        assert [item.id for item in (await inbox.items(Answerer(principal="local"))).items] == [
            f"sessions:{session_id}.a"
        ]
        assert (await inbox.items(Answerer(principal="somebody"))).items == ()
