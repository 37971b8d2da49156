"""Gates that were seen red: a pass of a repeatable gate counts once it has refused the work, broken."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from functools import partial

import anyio
import pytest

from deepwork.paths.user_folders import user_state_dir
from deepwork.testing import output, review, step

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}
HONEST = 'grep -qs "The work of 12 people" a.md && test -s a.md'
VACUOUS = "echo PASS"


def has_private_mounts():
    return sys.platform == "linux" and not subprocess.run(["unshare", "-Urm", "true"], capture_output=True).returncode


IN_PROJECT = pytest.mark.skipif(not has_private_mounts(), reason="this system makes no private mounts")


@pytest.fixture
def gate(reviewed, user_config):
    """Let a shell script be the gate, and give the keywords that choose it."""

    def make(script, *, prove=None, strict=False, **more):
        command = {"run": ["sh", "-c", script], "verdict": "exit_code", **more}
        policy = {"prove": prove} if prove else {}
        user_config(commands={"tests": command}, strict=strict, **policy)
        reviewed.write("a.md", "The work of 12 people\n")
        return {"external_runner": "tests"}

    return make


async def finished(reviewed, chosen):
    async with reviewed.agent(**chosen) as agent:
        await agent.start()
        return await agent.finish(DONE)


def tree(root):
    """Return everything of a project that can be seen from outside, but for the state of sessions."""
    return {
        str(file.relative_to(root)): (
            os.lstat(file),
            hashlib.sha256(file.read_bytes()).digest() if file.is_file() else b"",
        )
        for file in sorted(root.rglob("*"))
        if ".deepwork/tmp" not in str(file)
    }


async def test_a_gate_that_refuses_broken_work_is_proved_by_content(reviewed, gate, history):
    reply = await finished(reviewed, gate(HONEST))
    assert (reply["status"], reply.get("notices")) == ("next_step", None)
    assert [verdict["proof"] for verdict in history("verdict")] == [{"result": "proved", "grade": "content"}]


async def test_a_gate_that_only_looks_whether_there_is_something_is_proved_by_presence(reviewed, gate, history):
    await finished(reviewed, gate("test -e a.md"))
    assert history("verdict")[0]["proof"] == {"result": "proved", "grade": "presence"}


@pytest.mark.parametrize("script", [VACUOUS, "grep -q nothing a.md || true", "test -d ."])
async def test_a_gate_that_cannot_fail_passes_with_a_notice(reviewed, gate, history, script):
    reply = await finished(reviewed, gate(script))
    assert reply["status"] == "next_step"
    [notice] = reply["notices"]
    assert "The pass of 'tests' says nothing: it also passed the work with" in notice
    assert "Only the user can fix this gate" in notice
    assert history("verdict")[0]["proof"]["result"] == "cannot_fail"


@pytest.mark.parametrize("more", [{"prove": "hold"}, {"strict": True}])
async def test_held_it_is_no_verdict_and_never_counts_towards_three(reviewed, gate, history, more):
    async with reviewed.agent(**gate(VACUOUS, **more)) as agent:
        await agent.start()
        for _ in range(4):
            reply = await agent.finish(DONE)
            assert reply["status"] == "needs_work"
            assert "says nothing" in reply["feedback"]
            assert "Only the user can fix" in reply["feedback"]
    assert history("verdict") == []
    assert len(history("attempt_given_back")) == 4
    assert history("infrastructure")[0]["proof"]["result"] == "cannot_fail"


async def test_off_nothing_is_tried(reviewed, gate, history):
    await finished(reviewed, gate(f"echo x >> {reviewed.root}/../runs; {VACUOUS}", prove="off"))
    assert "proof" not in history("verdict")[0]
    assert (reviewed.root / "../runs").read_text() == "x\n"


@pytest.mark.parametrize(
    ("own", "of_project", "effective"),
    [
        (None, "off", "warn"),
        ("off", "hold", "hold"),
        ("hold", "warn", "hold"),
        ("off", None, "off"),
        (None, None, "warn"),
    ],
)
async def test_a_project_can_only_raise_it_and_needs_no_trust(reviewed, gate, deepwork, own, of_project, effective):
    chosen = gate(VACUOUS, prove=own)
    if of_project:
        reviewed.write(".deepwork/config.yml", f"quality_gate: {{prove: '{of_project}'}}\n")
    reply = await finished(reviewed, chosen)
    effect = "hold" if reply["status"] == "needs_work" else "warn" if reply.get("notices") else "off"
    assert effect == effective


async def test_the_usual_proof_is_one_more_run_and_one_control(reviewed, gate):
    """A gate that has refused broken work before is asked first about the contents that it has to read."""
    runs = reviewed.root.parent / "runs"
    script = f"echo x >> {runs}; {HONEST}"
    counts = []
    for _ in range(2):
        await finished(reviewed, gate(script, folder="project"))
        counts.append(runs.read_text().count("x"))
        runs.unlink()
    assert counts == ([4, 3] if has_private_mounts() else [1, 1])


async def test_the_work_of_the_last_refused_attempt_is_tried_and_is_kept_for_the_user_alone(reviewed, gate, history):
    """It is what a gate has to refuse again; here nothing else that can be read is refused."""
    chosen = gate("test -s a.md && ! grep -q TODO a.md")
    async with reviewed.agent(**chosen) as agent:
        await agent.start()
        reviewed.write("a.md", "The TODO of 12 people\n")
        assert (await agent.finish(DONE))["status"] == "needs_work"
        [file] = (user_state_dir(os.environ) / "proofs/refused").iterdir()
        assert file.stat().st_mode & 0o077 == file.parent.stat().st_mode & 0o077 == 0
        reviewed.write("a.md", "The work of 12 people\n")
        assert (await agent.finish(DONE))["status"] == "next_step"
    assert history("verdict")[-1]["proof"] == {"result": "proved", "grade": "content"}


async def test_without_a_refused_attempt_the_same_gate_refuses_only_what_is_empty(reviewed, gate, history):
    await finished(reviewed, gate("test -s a.md && ! grep -q TODO a.md"))
    assert history("verdict")[-1]["proof"] == {"result": "proved", "grade": "presence"}


@IN_PROJECT
async def test_in_whole_seconds_broken_work_never_has_the_time_of_the_work(reviewed, gate):
    times = reviewed.root.parent / "times"
    for age in range(2, 8):
        chosen = gate(f"stat -c %Y a.md >> {times}; {HONEST}", folder="project")
        os.utime(reviewed.root / "a.md", (time.time() - age,) * 2)
        await finished(reviewed, chosen)
        honest, *times_of_broken = times.read_text().split()
        assert honest not in times_of_broken
        times.unlink()


@IN_PROJECT
async def test_a_build_that_looks_at_times_takes_up_broken_work(reviewed, gate, history):
    script = f"if [ ! -e built ] || [ a.md -nt built ]; then {HONEST} && touch built; fi"
    await finished(reviewed, gate(script, folder="project"))
    assert history("verdict")[0]["proof"] == {"result": "proved", "grade": "content"}


async def test_a_crash_is_not_red(reviewed, gate, history):
    await finished(reviewed, gate(f"{HONEST} || kill -SEGV $$"))
    assert history("verdict")[0]["proof"]["result"] == "not_provable"


@pytest.mark.parametrize(
    "words", ["no tests ran in 0.01s", "connect ECONNREFUSED", "cat: other.txt: No such file or directory"]
)
async def test_a_refusal_that_is_about_something_else_is_not_red(reviewed, gate, history, words):
    reply = await finished(reviewed, gate(f"{HONEST} || {{ echo '{words}'; exit 1; }}", prove="hold"))
    assert reply["status"] == "next_step"
    assert "It is not proved here that 'tests' can refuse this work" in reply["notices"][0]
    assert history("verdict")[0]["proof"]["result"] == "not_provable"


async def test_a_gate_that_is_red_for_the_honest_work_too_is_not_proved(reviewed, gate, history):
    runs = reviewed.root.parent / "runs"
    await finished(reviewed, gate(f"echo x >> {runs}; test $(wc -l < {runs}) -lt 2"))
    proof = history("verdict")[0]["proof"]
    assert proof["result"] == "not_provable"
    assert "did not pass the work as it is when it was asked again" in proof["reason"]


async def test_a_sample_of_the_user_takes_the_place_of_the_work(reviewed, gate, history):
    reviewed.write("bad.md", "The work of 12 people, and a TODO\n")
    await finished(reviewed, gate("! grep -q TODO a.md", must_fail=["bad.md"]))
    assert history("verdict")[0]["proof"] == {"result": "proved", "grade": "content"}


async def test_another_sample_sets_aside_what_was_proved(reviewed, gate):
    reviewed.write("bad.md", "The work of 12 people, and a TODO\n")
    chosen = gate("! grep -q TODO a.md", must_fail=["bad.md"])
    assert "notices" not in await finished(reviewed, chosen)
    reviewed.write("bad.md", "Fine\n")
    assert "also passed the work with sample: bad.md" in (await finished(reviewed, chosen))["notices"][0]


async def test_a_sample_that_is_accepted_is_named(reviewed, gate):
    reviewed.write("bad.md", "Fine\n")
    [notice] = (await finished(reviewed, gate("! grep -q TODO a.md", must_fail=["bad.md"])))["notices"]
    assert "sample: bad.md" in notice


async def test_a_sample_that_is_missing_is_told_and_proves_nothing(reviewed, gate, history):
    reply = await finished(reviewed, gate(VACUOUS, must_fail=["gone.md"], prove="hold"))
    assert reply["status"] == "next_step"
    assert "must_fail names 'gone.md', which is not there" in reply["notices"][0]


async def test_an_argument_that_names_the_work_is_read_in_the_folder_of_the_gate(reviewed, user_config, history):
    script = "import sys; sys.exit('12' not in open(sys.argv[1]).read())"
    run = [sys.executable, "-IS", "-c", script, "a.md"]
    user_config(commands={"tests": {"run": run, "verdict": "exit_code"}}, prove="hold")
    reviewed.write("a.md", "12\n")
    reply = await finished(reviewed, {"external_runner": "tests"})
    assert reply["status"] == "next_step", reply
    assert history("verdict")[0]["proof"]["result"] == "proved"


@IN_PROJECT
async def test_a_gate_in_the_project_sees_broken_work_at_its_path_and_the_project_stays_as_it_is(
    reviewed, gate, history
):
    log = reviewed.root.parent / "seen"
    script = f"md5sum < {reviewed.root}/a.md >> {log}; echo written > {reviewed.root}/by_gate; {HONEST}"
    chosen = gate(script, folder="project")
    reviewed.write("by_gate", "written\n")
    before = tree(reviewed.root)
    await finished(reviewed, chosen)
    proof = history("verdict")[0]["proof"]
    assert proof == {"result": "proved", "grade": "content"}
    assert len(set(log.read_text().splitlines())) > 1
    after = tree(reviewed.root)
    assert {path: digest for path, (_, digest) in before.items()} == {
        path: digest for path, (_, digest) in after.items()
    }
    assert before["a.md"] == after["a.md"]


@IN_PROJECT
async def test_what_a_gate_writes_while_it_sees_broken_work_never_reaches_the_project(reviewed, gate):
    script = f"{HONEST} || {{ touch {reviewed.root}/broken; exit 1; }}"
    for folder in ("copy", "project"):
        await finished(reviewed, gate(script, folder=folder))
        assert not (reviewed.root / "broken").exists()


async def test_nothing_is_left_among_the_temporary_files(reviewed, gate, temporary_files):
    await finished(reviewed, gate(HONEST))
    assert not [file for file in temporary_files.iterdir() if file.name.startswith("deepwork-private")]


async def test_a_proof_in_the_copy_holds_for_other_sessions_until_the_gate_changes(reviewed, gate):
    runs = reviewed.root.parent / "runs"
    script = f"echo x >> {runs}; {HONEST}"
    await finished(reviewed, gate(script))
    reviewed.write("a.md", "The work of 12 people, twice\n")
    async with reviewed.agent(external_runner="tests") as agent:
        await agent.start()
        await agent.finish(DONE)
    assert runs.read_text().count("x") == 5
    await finished(reviewed, gate(f"true; {script}"))
    assert runs.read_text().count("x") == 9


async def test_a_reviewer_of_json_is_not_asked_again(reviewed, user_config, history):
    runs = reviewed.root.parent / "runs"
    answer = json.dumps({"passed": True, "feedback": "", "criteria_results": [{"criterion": "Good", "passed": True}]})
    user_config(commands={"tests": {"run": ["sh", "-c", f"echo x >> {runs}; echo '{answer}'"]}}, prove="hold")
    assert (await finished(reviewed, {"external_runner": "tests"}))["status"] == "next_step"
    assert runs.read_text().count("x") == 1


async def test_each_gate_of_a_list_is_proved_by_itself(project, user_config, history):
    project.write_job(steps=[step("a", outputs={"a.md": output()}, reviews=[review("a.md")])])
    project.write("a.md", "The work of 12 people\n")
    commands = {
        name: {"run": ["sh", "-c", code], "verdict": "exit_code"} for name, code in [("one", HONEST), ("two", VACUOUS)]
    }
    user_config(commands=commands, runners=[{"runner": ["one", "two"]}])
    await finished(project, {})
    assert {verdict["runner"]: verdict["proof"]["result"] for verdict in history("verdict")} == {
        "one": "proved",
        "two": "cannot_fail",
    }


async def test_the_secret_is_the_users_alone(reviewed, gate):
    await finished(reviewed, gate(HONEST))
    secret = user_state_dir(os.environ) / "proof-secret"
    assert len(secret.read_bytes()) == 32
    assert secret.stat().st_mode & 0o077 == 0


async def test_the_inbox_has_one_item_for_a_gate_that_cannot_fail_until_it_is_proved(reviewed, gate, deepwork):
    async def items():
        return [item["id"] for item in json.loads(await deepwork("inbox", "--json"))["items"] if item["kind"] == "gate"]

    for _ in range(2):
        await finished(reviewed, gate(VACUOUS))
    assert await items() == ["setup:gate.tests"]
    await finished(reviewed, gate(HONEST))
    assert await items() == []


async def test_verify_and_show_say_on_what_a_pass_rests(reviewed, gate, deepwork):
    async with reviewed.agent(**gate(HONEST)) as agent:
        begin = await agent.start()
        await agent.finish(DONE)
        await agent.finish({"b.md": "b.md"})
    words = "seen to refuse this work when it was broken"
    assert words in await deepwork("sessions", "verify", begin["session_id"])
    assert words in await deepwork("gate", "show", begin["session_id"])


async def test_progress_of_a_proof_is_told_and_cancelling_the_call_ends_it(reviewed, gate, stored):
    number, messages = reviewed.root.parent / "number", []
    chosen = gate(f"{HONEST} || {{ echo $$ > {number}; exec sleep 1000; }}")

    async def hear(_progress, _total, message):
        messages.append(message)

    async with reviewed.agent(**chosen) as agent:
        await agent.start()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(agent.client.call_tool, "finished_step", {"outputs": DONE}, progress_handler=hear))
            await until(lambda: number.exists() and number.read_text() and "on purpose" in str(messages))
            tasks.cancel_scope.cancel()
        assert "reviewing step by tests, broken on purpose" in str(messages)
        await until(lambda: not is_running(int(number.read_text())))
        await until(lambda: stored()["step_progress"]["a"]["quality_attempts"] == 0)


async def until(condition):
    with anyio.fail_after(240):
        while not condition():  # noqa: ASYNC110 - what a test waits for has no event
            await anyio.sleep(0.005)


def is_running(number):
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True
