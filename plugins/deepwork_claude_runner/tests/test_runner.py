"""Whole calls of `finished_step`, judged by a `claude` that answers, or by a failing one."""

from __future__ import annotations

import base64

import anyio
import pytest

from deepwork.testing import output, review, step

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}


async def test_a_step_that_claude_passes_is_completed(reviewed, claude):
    async with reviewed.agent(external_runner="claude") as agent:
        await agent.start()
        assert (await agent.finish(DONE))["status"] == "next_step"
    assert len(claude.calls) == 1


async def test_what_claude_finds_wrong_reaches_the_agent(reviewed, claude):
    claude.behaves(mode="fail", feedback="Say where it comes from")
    async with reviewed.agent(external_runner="claude") as agent:
        await agent.start()
        reply = await agent.finish(DONE)
    assert (reply["status"], reply["feedback"]) == ("needs_work", "Say where it comes from")
    [failed] = reply["failed_reviews"]
    assert [result["criterion"] for result in failed["criteria_results"]] == ["Complete", "True"]


async def test_model_tokens_and_cost_are_stored(reviewed, claude, history):
    async with reviewed.agent(external_runner="claude") as agent:
        await agent.start()
        await agent.finish(DONE)
    [verdict] = history("verdict")
    fields = [verdict[name] for name in ("runner", "model", "input_tokens", "output_tokens", "cost_usd")]
    assert fields == ["claude", "claude-fake-1", 120, 30, 0.0123]


async def test_a_list_of_messages_is_understood_too(reviewed, claude):
    claude.behaves(mode="messages")
    async with reviewed.agent(external_runner="claude") as agent:
        await agent.start()
        assert (await agent.finish(DONE))["status"] == "next_step"


NOT_LOGGED_IN = {"is_error": True, "terminal_reason": "api_error", "result": "Not logged in · Please run /login"}
LIMITED = {"is_error": True, "result": "Claude AI usage limit reached|1762953600"}
OUT_OF_TURNS = {
    "is_error": True,
    "subtype": "error_max_turns",
    "errors": ["Reached maximum number of turns (1)"],
    "result": None,
}


def raw(content):
    return {"mode": "raw", "bytes": base64.b64encode(content).decode()}


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ({"mode": "error", "reply": NOT_LOGGED_IN}, "Claude is not logged in: Not logged in · Please run /login"),
        ({"mode": "error", "reply": LIMITED}, "limited until 2025-11-12 13:20 UTC: Claude AI usage limit reached|"),
        ({"mode": "error", "reply": OUT_OF_TURNS}, "Claude gave up: Reached maximum number of turns (1)"),
        ({"mode": "text", "text": "All fine. " * 100}, "Claude gave no structured answer, but said: All fine."),
        ({"mode": "exit", "code": 7, "stderr": "no such model\n"}, "Claude ended with code 7: no such model"),
        ({"mode": "exit", "code": 0, "stderr": "hm\n"}, "Claude printed no JSON: nothing"),
        ({"mode": "killed"}, "Claude was killed by SIGKILL"),
        (raw(b"\xff\xfe not text"), "Claude printed no JSON"),
        (raw(b"[" * 100_000), "Claude printed no JSON"),
        (raw(b"[]"), "Claude's answer holds no result: []"),
        (raw(b"17"), "Claude's answer holds no result: 17"),
        ({"mode": "answer", "answer": None}, "the answer is not an object with `passed`, but null"),
        ({"mode": "answer", "answer": []}, "the answer is not an object with `passed`, but list"),
        ({"mode": "answer", "answer": {}}, "the answer is not a verdict"),
        ({"mode": "answer", "answer": {"passed": "false"}}, "`passed` is str, not true or false"),
        ({"mode": "answer", "answer": {"passed": True, "feedback": 3}}, "`feedback` is int, not text"),
        ({"mode": "answer", "answer": {"passed": True, "criteria_results": {}}}, "`criteria_results` is dict"),
        ({"mode": "answer", "answer": {"passed": True, "criteria_results": ["x"]}}, "an entry of `criteria_results`"),
        (
            {"mode": "answer", "answer": {"passed": True, "criteria_results": [{"criterion": "True", "passed": True}]}},
            "missing: 'Complete'",
        ),
    ],
)
async def test_every_invalid_output_is_reported_and_costs_no_attempt(reviewed, claude, history, behaviour, message):
    claude.behaves(behaviour)
    async with reviewed.agent(external_runner="claude") as agent:
        await agent.start()
        reply = await agent.finish(DONE)
    assert reply["status"] == "needs_work"
    assert message in reply["feedback"]
    assert len(reply["feedback"]) < 1000
    assert len(history("attempt_given_back")) == 1


@pytest.mark.parametrize(
    ("result", "state", "cure"),
    [
        ("Invalid API key · Please run /login", "was refused by Anthropic", "log in again"),
        ("Invalid API key · Fix external API key", "was refused by Anthropic", "a valid ANTHROPIC_API_KEY"),
        (
            'API Error: 401 {"error": {"type": "authentication_error", "message": "OAuth token has expired."}}',
            "was refused by Anthropic",
            "log in again",
        ),
        ("OAuth token revoked · Please run /login", "was refused by Anthropic", "log in again"),
        ("Credit balance is too low", "has no credit left", "add credit"),
        ("Your account does not have access to Claude Code.", "has no access", "the account's administrator"),
        ("This organization has been disabled.", "has no access", "the account's administrator"),
        ("Please log in first", "is not logged in", "run `claude` once"),
    ],
)
async def test_an_error_that_only_the_user_can_fix_is_told_as_theirs(reviewed, claude, result, state, cure):
    claude.behaves(mode="error", reply={"is_error": True, "result": result})
    async with reviewed.agent(external_runner="claude") as agent:
        await agent.start()
        feedback = (await agent.finish(DONE))["feedback"]
    assert f"Claude {state}" in feedback
    assert cure in feedback
    assert "Call finished_step again with the same outputs" not in feedback


async def test_an_error_that_may_pass_by_itself_is_not_told_as_the_users_business(reviewed, claude):
    claude.behaves(mode="error", reply={"is_error": True, "result": "API Error: 529 Overloaded, token count 12"})
    async with reviewed.agent(external_runner="claude") as agent:
        await agent.start()
        assert "Claude gave up: API Error: 529" in (await agent.finish(DONE))["feedback"]


async def test_a_limit_that_was_reached_comes_with_its_setting(reviewed, claude):
    claude.behaves(mode="error", reply=OUT_OF_TURNS)
    async with reviewed.agent(external_runner="claude") as agent:
        await agent.start()
        assert "Raise plugins.settings.claude_runner.max_turns." in (await agent.finish(DONE))["feedback"]


@pytest.mark.parametrize("nothing", [{}, {"criteria_results": None}, {"criteria_results": []}])
async def test_an_answer_without_all_criteria_is_not_a_verdict(reviewed, claude, nothing):
    claude.behaves(mode="answer", answer={"passed": True, "feedback": "ok", **nothing})
    async with reviewed.agent(external_runner="claude") as agent:
        await agent.start()
        assert "missing: 'Complete', 'True'" in (await agent.finish(DONE))["feedback"]


async def test_an_answer_without_passed_is_not_a_verdict(reviewed, claude):
    claude.behaves(mode="answer", answer={"feedback": "Great work"})
    async with reviewed.agent(external_runner="claude") as agent:
        await agent.start()
        reply = await agent.finish(DONE)
    assert reply["status"] == "needs_work"
    assert "the answer is not a verdict: it has no `passed`" in reply["feedback"]


async def test_a_missing_program_comes_with_a_hint(reviewed, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    async with reviewed.agent(external_runner="claude") as agent:
        await agent.start()
        feedback = (await agent.finish(DONE))["feedback"]
    assert "'claude' cannot be started: No such file or directory" in feedback
    assert "Install Claude Code" in feedback


async def test_a_reviewer_that_never_ends_is_killed_at_the_limit_with_its_children(reviewed, claude):
    claude.behaves(mode="hang", leaves_child=True)
    async with reviewed.agent(external_runner="claude", quality_gate_timeout=1) as agent:
        await agent.start()
        with anyio.fail_after(240):  # it would hang for five minutes
            reply = await agent.finish(DONE)
    assert "within 1 s" in reply["feedback"]
    assert claude.survivors() == []


async def test_a_child_that_keeps_stdout_does_not_keep_the_agent(reviewed, claude):
    claude.behaves(mode="pass", leaves_child=True)
    async with reviewed.agent(external_runner="claude") as agent:
        await agent.start()
        with anyio.fail_after(240):  # the child lives for five minutes
            assert (await agent.finish(DONE))["status"] == "next_step"
    assert claude.survivors() == []


async def test_a_flood_is_cut_off(reviewed, claude):
    claude.behaves(mode="flood")
    async with reviewed.agent(external_runner="claude") as agent:
        await agent.start()
        reply = await agent.finish(DONE)
    assert "printed more than 8,388,608 bytes and was killed" in reply["feedback"]
    assert claude.survivors() == []


@pytest.mark.slow
async def test_sixty_files_never_start_more_than_the_pool_allows(project, claude):
    project.write_job(steps=[step("a", outputs={"parts": output("files")}, reviews=[review("parts")])])
    files = [project.write(f"part{number}.md").name for number in range(60)]
    claude.behaves(mode="pass", seconds=0.02)
    project.write(".deepwork/config.yml", "plugins: {settings: {claude_runner: {concurrency: 3}}}\n")
    async with project.agent(external_runner="claude") as agent:
        await agent.start()
        assert (await agent.finish({"parts": files}))["status"] == "workflow_complete"
    assert len(claude.calls) == 60
