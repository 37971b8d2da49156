"""Notifications: to a webhook and to a command, configured by the user alone, none lost and none told twice."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import anyio
import pytest

from deepwork import api
from deepwork.api import Answerer, InboxItem
from deepwork.builtin.people import notifier as notifier_module
from deepwork.builtin.people.notifications import notifier_of
from deepwork.builtin.people.notifier import Notifier
from deepwork.builtin.people.targets import NotSent, Target, signature
from deepwork.errors import ConfigError
from deepwork.ports.inbox import InboxContents, InboxFailure
from deepwork.project.project import Project
from deepwork.testing import review, step
from deepwork.testing.wire import PATIENCE
from webhook import SECRET, Webhook

pytestmark = pytest.mark.anyio


@pytest.fixture
def webhook():
    servers = []

    def make(*statuses, **more):
        servers.append(Webhook(*statuses, **more))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


@pytest.fixture
def sender(project):
    """Start `deepwork inbox --watch --notify` as a process."""
    processes = []

    def start(**environment):
        command = [sys.executable, "-m", "deepwork", "inbox", "--watch", "--notify", "--path", str(project.root)]
        env = {**os.environ, **environment}
        with open(project.root / f"sender{len(processes)}.log", "wb") as log:
            processes.append(subprocess.Popen(command, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.wait()


async def until(condition):
    """Wait until something of another process has happened."""
    with anyio.fail_after(PATIENCE):
        while not condition():  # noqa: ASYNC110 - what another process does has no event here
            await anyio.sleep(0.05)


async def strict_request(project, agent):
    """Have an agent ask for an override, and give the id under which it waits."""
    begin = await agent.start()
    await agent.refused(
        "finished_step", outputs={"a.md": "a.md"}, session_id=begin["session_id"], quality_review_override_reason="Fine"
    )
    return f"sessions:{begin['session_id']}.a"


@pytest.fixture
def strict(project, user_config, judge, served):
    """A project whose agents can ask for overrides, and write the user's configuration with a receiver."""
    project.write_job(steps=[step("a", reviews=[review()])])
    project.write("a.md")

    def configure(receiver):
        user_config(f"quality_gate: {{strict: true}}\nnotifications: {receiver}\n")
        return project.agent(served(judge(None)))

    return configure


# To a webhook, by real processes


async def test_a_webhook_is_told_once_signed_with_the_id_and_state_by_which_it_drops_repeats(
    project, strict, webhook, sender
):
    receiver = webhook()
    async with strict(f"{{webhook: '{receiver.url}'}}") as agent:
        process = sender(DEEPWORK_WEBHOOK_SECRET=SECRET)
        first = await strict_request(project, agent)
        await until(lambda: receiver.told)
        second = await strict_request(project, agent)
        await until(lambda: len(receiver.told) == 2)
    assert [item_id for item_id, _ in receiver.told] == [first, second]
    path, headers, content, _ = receiver.requests[0]
    assert path == "/hook?room=1"
    assert (content["project"], content["item"]["kind"]) == (str(project.root), "override")
    assert receiver.forged == 0
    assert headers["Idempotency-Key"] != receiver.requests[1][1]["Idempotency-Key"]
    process.terminate()
    assert process.wait(100) == 0
    log = (project.root / "sender0.log").read_text()
    assert first in log
    assert SECRET not in log
    assert "room=1" not in log


async def test_a_sender_that_is_killed_loses_nothing_and_the_next_one_tells_nothing_twice(
    project, strict, webhook, sender
):
    receiver = webhook()
    async with strict(f"{{webhook: '{receiver.url}'}}") as agent:
        process = sender(DEEPWORK_WEBHOOK_SECRET=SECRET)
        first = await strict_request(project, agent)
        notes = [*_state_folder().rglob("sent.json")]
        await until(lambda: [*_state_folder().rglob("sent.json")])
        process.kill()
        second = await strict_request(project, agent)
        sender(DEEPWORK_WEBHOOK_SECRET=SECRET)
        await until(lambda: len(receiver.told) >= 2)
        third = await strict_request(project, agent)
        await until(lambda: len(receiver.told) >= 3)
    assert notes == []
    assert [item_id for item_id, _ in receiver.told] == [first, second, third]


async def test_one_of_two_senders_sends_and_the_other_goes_on_when_it_dies(project, strict, webhook, sender):
    receiver = webhook()
    async with strict(f"{{webhook: '{receiver.url}'}}") as agent:
        first_sender = sender(DEEPWORK_WEBHOOK_SECRET=SECRET)
        first = await strict_request(project, agent)
        await until(lambda: receiver.told)
        sender(DEEPWORK_WEBHOOK_SECRET=SECRET)
        await until(lambda: "another process sends" in (project.root / "sender1.log").read_text())
        first_sender.send_signal(signal.SIGKILL)
        second = await strict_request(project, agent)
        await until(lambda: len(receiver.told) >= 2)
    assert [item_id for item_id, _ in receiver.told] == [first, second]


async def test_a_command_gets_the_item_on_stdin_and_a_cleaned_environment(
    project, strict, sender, tmp_path_factory, monkeypatch
):
    folder = tmp_path_factory.mktemp("receiver")
    program = folder / "tell"
    program.write_text(f"#!/bin/sh\ncat >> {folder}/told\necho >> {folder}/told\nenv > {folder}/environment\n")
    program.chmod(0o755)
    monkeypatch.setenv("DEEPWORK_WEBHOOK_SECRET", SECRET)
    monkeypatch.setenv("ROOM", "7")
    async with strict(f"{{command: ['{program}'], pass_env: [ROOM]}}") as agent:
        sender()
        waiting = await strict_request(project, agent)
        await until(lambda: (folder / "told").exists() and (folder / "told").read_text().endswith("\n"))
    [line] = (folder / "told").read_text().splitlines()
    assert json.loads(line)["id"] == waiting
    environment = (folder / "environment").read_text()
    assert "ROOM=7" in environment
    assert SECRET not in environment


async def test_a_test_says_of_everybody_whether_they_took_it(project, user_config, webhook, deepwork, monkeypatch):
    monkeypatch.setenv("DEEPWORK_WEBHOOK_SECRET", SECRET)
    receiver = webhook()
    user_config(f"notifications: {{webhook: '{receiver.url}', command: ['false']}}\n")
    text = await deepwork("inbox", "test", code=1)
    assert f"{receiver.url.partition('/hook')[0]} has it" in text
    assert "command 'false' ended with code 1" in text
    assert receiver.told[0][0] == "test:notification"
    assert f"{receiver.url.partition('/hook')[0]}; `deepwork inbox test` sends it one" in await deepwork("doctor")


# What goes wrong at a webhook


@pytest.fixture
def running(tmp_path_factory, monkeypatch):
    """Run a notifier of items that a test gives, with short pauses."""
    monkeypatch.setattr(notifier_module, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(notifier_module, "FIRST_PAUSE", 0.05)
    folder = tmp_path_factory.mktemp("notes")

    def make(targets, *items):
        inbox = FixedInbox(items)
        notifier = Notifier(inbox, targets, folder=folder, project=folder)
        notifier.inbox, notifier.folder = inbox, folder
        return notifier

    return make


class FixedInbox:
    def __init__(self, items):
        self.contents = InboxContents(items=tuple(items))
        self.looks = 0

    async def items(self, by):
        assert by == Answerer()
        self.looks += 1
        return self.contents

    def show(self, *items, failed=(), more=0):
        failures = tuple(InboxFailure(source=source, error="away") for source in failed)
        self.contents = InboxContents(items=items, failures=failures, more=more)


class Fake(Target):
    """A target that fails for some items, or waits."""

    name = key = "fake"

    def __init__(self, refuses=(), stuck=()):
        self.told = []
        self.attempts = []
        self.refuses = set(refuses)
        self.stuck = set(stuck)

    async def send(self, notification):
        content = json.loads(notification.body)
        self.attempts.append(content["id"])
        if content["id"] in self.stuck:
            await anyio.sleep_forever()
        if content["id"] in self.refuses:
            raise NotSent("fake answered 500")
        self.told.append((content["id"], content["state"]))


def item(item_id="acme:1", state="asked", **more):
    since = "2026-01-01T00:00:00+00:00"
    return InboxItem(id=item_id, kind="question", what="Which?", since=since, state=state, **more)


async def run_until(notifier, condition):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(notifier.run)
        await until(condition)
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("status", [500, 429, 404, 301, 307])
async def test_what_a_webhook_does_not_accept_is_sent_again_and_no_redirect_is_followed(
    project, strict, webhook, running, user_config, monkeypatch, status
):
    receiver = webhook(status, status)
    user_config(f"notifications: {{webhook: '{receiver.url}'}}\n")
    monkeypatch.setenv("DEEPWORK_WEBHOOK_SECRET", SECRET)
    [target] = notifier_of(api.project_at(project.root)).targets
    notifier = running([target], item())
    await run_until(notifier, lambda: notifier._sent.state((target.key, "acme:1")) and not notifier.problems)
    assert [path for path, *_ in receiver.requests] == ["/hook?room=1"] * 3


async def test_an_address_that_nobody_serves_is_a_problem_that_is_told_without_the_secret(
    project, running, user_config, monkeypatch
):
    user_config("notifications: {webhook: 'http://127.0.0.1:9/hook/token-in-path'}\n")
    monkeypatch.setenv("DEEPWORK_WEBHOOK_SECRET", SECRET)
    notifier = running(notifier_of(api.project_at(project.root)).targets, item())
    await run_until(notifier, lambda: notifier.problems)
    [text] = notifier.problems.values()
    assert text.startswith("webhook http://127.0.0.1:9:")
    assert "token-in-path" not in text
    assert SECRET not in text


async def test_a_webhook_that_hangs_is_given_up_and_tried_again(webhook, running, user_config, project, monkeypatch):
    monkeypatch.setattr("deepwork.builtin.people.targets.SECONDS", 0.3)
    hold = threading.Event()
    receiver = webhook(at_request=lambda: hold.wait(PATIENCE))
    user_config(f"notifications: {{webhook: '{receiver.url}'}}\n")
    monkeypatch.setenv("DEEPWORK_WEBHOOK_SECRET", SECRET)
    notifier = running(notifier_of(api.project_at(project.root)).targets, item())
    await run_until(notifier, lambda: len(receiver.requests) >= 2)
    assert "did not answer within 0.3 s" in "".join(notifier.problems.values())
    hold.set()


async def test_one_item_that_is_refused_and_some_that_hang_hold_up_no_other(running):
    target = Fake(refuses=["acme:1"], stuck=["acme:2", "acme:3"])
    notifier = running([target], *(item(f"acme:{number}") for number in range(1, 9)))
    await run_until(notifier, lambda: len(target.told) == 5)
    assert {item_id for item_id, _ in target.told} == {f"acme:{number}" for number in range(4, 9)}


async def test_a_target_that_fails_holds_up_no_other_target(running):
    broken, good = Fake(refuses=["acme:1"]), Fake()
    good.name = good.key = "good"
    notifier = running([broken, good], item())
    await run_until(notifier, lambda: good.told and len(broken.attempts) > 1)
    assert "fake answered 500" in notifier.problems["fake"]


# What is noted


async def test_a_new_state_is_told_and_what_a_person_has_in_hand_is_not(running):
    target = Fake()
    notifier = running([target], item(), item("acme:2", held_by="ada"))
    await run_until(notifier, lambda: target.told)
    notifier.inbox.show(item(state="asked again"), item("acme:2"))
    await run_until(notifier, lambda: len(target.told) == 3)
    assert sorted(target.told) == [("acme:1", "asked"), ("acme:1", "asked again"), ("acme:2", "asked")]


async def test_notes_of_what_has_gone_are_forgotten_but_not_of_a_source_that_fails(running):
    target = Fake()
    notifier = running([target], item(), item("other:1"))
    await run_until(notifier, lambda: len(target.told) == 2)
    notifier.inbox.show(failed=["other"])
    looks = notifier.inbox.looks
    await run_until(notifier, lambda: notifier.inbox.looks > looks + 2)
    assert json.loads((notifier.folder / "sent.json").read_text()) == {"fake": {"other:1": "asked"}}
    notifier.inbox.show(item("other:1"))
    looks = notifier.inbox.looks
    await run_until(notifier, lambda: notifier.inbox.looks > looks + 2)
    assert len(target.told) == 2


async def test_what_is_urgent_does_not_wait_behind_a_flood(running):
    release = anyio.Event()

    class Slow(Fake):
        async def send(self, notification):
            await release.wait()
            await super().send(notification)

    target = Slow()
    flood = [item(f"acme:{number}") for number in range(50)]
    notifier = running([target], *flood)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(notifier.run)
        await until(lambda: notifier.inbox.looks > 1)
        notifier.inbox.show(item("acme:urgent", urgency=2), *flood)
        looks = notifier.inbox.looks
        await until(lambda: notifier.inbox.looks > looks + 1)
        release.set()
        await until(lambda: len(target.told) == 51)
        tasks.cancel_scope.cancel()
    assert "acme:urgent" in [item_id for item_id, _ in target.told[:8]]


async def test_what_a_cut_list_has_no_room_for_is_not_told_again_when_it_comes_back(running):
    target = Fake()
    notifier = running([target], item())
    await run_until(notifier, lambda: target.told)
    notifier.inbox.show(item("acme:2", urgency=2), more=1)
    await run_until(notifier, lambda: len(target.told) == 2)
    notifier.inbox.show(item())
    looks = notifier.inbox.looks
    await run_until(notifier, lambda: notifier.inbox.looks > looks + 2)
    assert len(target.told) == 2


async def test_damaged_notes_mean_that_all_is_told_again(running):
    target = Fake()
    notifier = running([target], item())
    (notifier.folder / "sent.json").write_text("{")
    await run_until(notifier, lambda: target.told)
    assert json.loads((notifier.folder / "sent.json").read_text()) == {"fake": {"acme:1": "asked"}}


async def test_notes_that_cannot_be_written_are_a_problem_and_nothing_is_told_twice(running):
    target = Fake()
    notifier = running([target], item())
    (notifier.folder / "sent.json").mkdir(parents=True)
    await run_until(notifier, lambda: notifier.inbox.looks > 5 and target.told)
    assert len(target.told) == 1
    assert "Is a directory" in notifier.problems["notes"]


# Configuration


async def test_a_project_cannot_say_who_is_told(project, deepwork, webhook):
    receiver = webhook()
    project.write(".deepwork/config.yml", f"notifications: {{webhook: '{receiver.url}', command: [touch, /tmp/x]}}\n")
    text = await deepwork("inbox")
    assert (
        "Note: notifications in .deepwork/config.yml has no effect and cannot be trusted: write it into your own"
        in text
    )
    text = await deepwork("inbox", "--watch", "--notify", code=1)
    assert "your own config.yml names no recipient of notifications" in text
    assert notifier_of(api.project_at(project.root)) is None
    assert Project(project.root).trust_requests() == []
    assert receiver.requests == []


@pytest.mark.parametrize(
    ("receiver", "message"),
    [
        ("{webhook: 'http://hooks.example/x'}", "would let others read what is sent"),
        ("{webhook: 'ftp://hooks.example/x'}", "would let others read what is sent"),
        ("{webhook: 'https://user:sesame@hooks.example/x'}", "is not an address"),
        ('{webhook: "https://hooks.example/x\\r\\nX: y"}', "is not an address"),
        ("{webhook: 'hooks'}", "is not an address"),
        ("{webhook: 'https://hooks.example/x'}", "has no secret to sign with"),
    ],
)
async def test_a_webhook_that_cannot_be_used_is_refused_with_the_cure(project, user_config, receiver, message):
    user_config(f"notifications: {receiver}\n")
    with pytest.raises(ConfigError, match=message) as error:
        notifier_of(api.project_at(project.root))
    assert error.value.hint
    assert "sesame" not in str(error.value)


async def test_the_secret_is_read_from_a_file_that_others_cannot_read(project, user_config, tmp_path_factory):
    file = tmp_path_factory.mktemp("secret") / "webhook"
    user_config(f"notifications: {{webhook: 'https://hooks.example/x', secret_file: '{file}'}}\n")
    file.write_text(f"{SECRET}\n")
    file.chmod(0o644)
    with pytest.raises(ConfigError, match="can be read by others"):
        notifier_of(api.project_at(project.root))
    file.chmod(0o600)
    assert SECRET not in repr(vars(notifier_of(api.project_at(project.root)).targets[0])["name"])
    file.write_text("short")
    with pytest.raises(ConfigError, match="under 16 characters"):
        notifier_of(api.project_at(project.root))


async def test_the_page_verifies_a_signature_as_it_is_made():
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "answer-what-waits.md").read_text()
    namespace = {}
    exec(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], namespace)
    is_genuine, now = namespace["is_genuine"], int(time.time())
    header = signature(SECRET.encode(), now, b"{}")
    assert is_genuine(header, b"{}", SECRET)
    assert not is_genuine(header, b"{ }", SECRET)
    assert not is_genuine(header, b"{}", "another secret")
    assert not is_genuine(signature(SECRET.encode(), now - 600, b"{}"), b"{}", SECRET)


def _state_folder():
    return Path(os.environ["XDG_STATE_HOME"])
