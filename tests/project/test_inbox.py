"""The inbox of a project: the sources of all plugins in one list; no source can hide another."""

from __future__ import annotations

import json
import os
import pty
import sys
import threading

import anyio
import pytest
from click.testing import CliRunner

from deepwork import api, hookimpl
from deepwork.api import Answerer, InboxAction, InboxItem, InboxSource
from deepwork.cli.main import main
from deepwork.commands.person import at_terminal as terminal_user
from deepwork.errors import ArgumentError, ItemChanged, PersonNeeded, UnknownItem
from deepwork.ports.inbox import Answer, InboxContents
from deepwork.project.project import Project
from deepwork.testing.wire import PATIENCE

pytestmark = pytest.mark.anyio

PERSON = Answerer(terminal="/dev/pts/1")


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
    """With several tasks the answer names an existing one; a single task need not be named; else no task may be."""
    several, single = Source([about_tasks(t1="a", t2="b")]), Source([about_tasks(t1="a")])
    plain = Source([question()])
    inbox = inbox_of(several=several, single=single, plain=plain)
    assert await inbox.answer("several:1", Answer("retry", task="t2"), PERSON) == "retry of t2 done"
    assert await inbox.answer("single:1", Answer("retry"), PERSON) == "retry of t1 done"
    refusals = {("several", "retry", None): "can be about 2 tasks.*t2 \\(b\\)", ("single", "retry", "t9"): "'t9'"}
    for (name, action, task), text in (refusals | {("plain", "reply", "t1"): "takes no task"}).items():
        with pytest.raises(ArgumentError, match=text):
            await inbox.answer(f"{name}:1", Answer(action, "text", task=task), PERSON)
    assert (len(several.answers), len(single.answers), plain.answers) == (1, 1, [])


@pytest.mark.parametrize(
    ("arguments", "typed", "is_asked"), [(["--task", "t2"], "", False), ([], "t2\n", True), ([], "t9\nt2\n", True)]
)
def test_a_terminal_names_the_task_or_is_asked_for_it(project, inbox_of, monkeypatch, arguments, typed, is_asked):
    source = Source([about_tasks(t1="build", t2="release")])
    inbox_of_source = inbox_of(plan=source)

    class ProjectOfSource(api.Project):
        def inbox(self):
            return inbox_of_source

    def project_of_source(root):
        return ProjectOfSource(root, lambda: Project(root))

    monkeypatch.setattr("deepwork.builtin.people.inbox.project_at", project_of_source)
    monkeypatch.setattr("deepwork.builtin.people.inbox.at_terminal", lambda: PERSON)
    monkeypatch.chdir(project.root)
    listed = CliRunner().invoke(main, ["inbox"])
    assert "-> retry --task ID" in listed.output
    answered = CliRunner().invoke(main, ["inbox", "answer", "plan:1", "retry", *arguments], input=typed)
    assert (answered.exit_code, "t2  release" in answered.stderr) == (0, is_asked), answered.output
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
    assert await inbox.answer("good:1", Answer("reply", "Green"), PERSON) == "reply done"


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
    page = await inbox.items(Answerer())
    assert (page.items[-1].id, page.more) == ("acme:alice", 2)


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
    assert await inbox.answer("acme:1000", Answer("reply", "Green"), PERSON) == "reply done"
    with pytest.raises(UnknownItem) as error:
        await inbox.answer("beta:2", Answer("reply", "Green"), PERSON)
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
    questions, release = [], threading.Event()

    class Waiting(Source):
        async def items(self):
            questions.append(1)
            await anyio.to_thread.run_sync(release.wait, PATIENCE)
            return await super().items()

    monkeypatch.setattr("deepwork.project.inbox.SECONDS", 0.2)
    inbox = inbox_of(good=Source([question()]), waiting=Waiting([question()]))
    for _ in range(3):
        contents = await inbox.items(Answerer())
        assert [item.id for item in contents.items] == ["good:1"]
        assert "did not answer within 0.2 s" in contents.failures[0].error
    assert len(questions) == 1
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
        await inbox.answer("acme:1", Answer("reply", "Green"), bob)
    await inbox.answer("acme:1", Answer("reply", "Green"), ada)
    assert source.answers == [("1", "reply", "Green", "ada")]


async def test_an_item_that_has_changed_since_it_was_seen_is_not_answered(inbox_of):
    source = Source([question(state="second")])
    inbox = inbox_of(acme=source)
    with pytest.raises(ItemChanged, match="has changed since"):
        await inbox.answer("acme:1", Answer("reply", "Green", state="first"), PERSON)
    await inbox.answer("acme:1", Answer("reply", "Green", state="second"), PERSON)
    assert len(source.answers) == 1


async def test_an_answer_to_a_source_of_a_plugin_needs_a_person_too(inbox_of):
    source = Source([question()])
    with pytest.raises(PersonNeeded, match="nothing was changed"):
        await inbox_of(acme=source).answer("acme:1", Answer("reply", "Green"), Answerer(principal="ada", user="ada"))
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


async def test_an_action_that_an_item_does_not_have_is_refused_with_those_that_it_has(inbox_of):
    actions = tuple(InboxAction(name=name, label=name) for name in ("retry", "abort"))
    inbox = inbox_of(acme=Source([question(actions=actions), question(id="2", actions=())]))
    for item_id, action, message in (
        ("acme:1", "foo", "'acme:1' has no action 'foo'; valid: abort, retry; nothing was changed"),
        ("acme:2", "retry", "'acme:2' has no action 'retry'; it has none; nothing was changed"),
    ):
        with pytest.raises(ArgumentError) as refusal:
            await inbox.answer(item_id, Answer(action), PERSON)
        assert refusal.value.message == message


async def test_an_item_without_files_and_criteria_has_no_such_keys_in_json(inbox_of):
    plain, full = question(), question(id="2", files=["a\n.md"] * 30, criteria=("Is it good?",))
    items = (await inbox_of(acme=Source([plain, full])).items(Answerer())).as_json()["items"]
    assert {"files", "criteria"}.isdisjoint(items[0])
    assert items[1]["criteria"] == ("Is it good?",)
    assert items[1]["files"] == ("a .md",) * 20


@pytest.mark.parametrize("more", [{"files": "a.md"}, {"criteria": (1,)}])
async def test_a_source_whose_files_or_criteria_are_no_texts_is_named(inbox_of, more):
    contents = await inbox_of(acme=Source([question(**more)])).items(Answerer())
    assert f"gave an item whose {next(iter(more))} are" in contents.failures[0].error


async def test_long_and_hostile_texts_are_shortened_and_made_visible(inbox_of):
    inbox = inbox_of(acme=Source([question(what="a\x1b[31m\n" * 1000, detail="d" * 100_000)]))
    [item] = (await inbox.items(Answerer())).items
    assert "\x1b" not in item.what
    assert "\n" not in item.what
    assert (len(item.what) <= 200, len(item.detail)) == (True, 4000)
