"""A person reviews a step: the step waits for them, and what they decide and say reaches the agent."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from deepwork.api import NeedsWork, Passed, project_at
from deepwork.errors import ArgumentError, ConfigError, ItemChanged, PersonNeeded
from deepwork.models.reviews import Waiting
from deepwork.ports.inbox import Answer, Answerer
from deepwork.testing import review, step
from deepwork.text import tokens_of

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}
ADA = Answerer(user="ada", terminal="/dev/pts/1")
BOB = Answerer(user="bob", terminal="/dev/pts/2")
TEXT = "".join(f"Line {number}\n" for number in range(1, 11))


@pytest.fixture
def by_person(project):
    """A project whose step `a` is reviewed by a person."""
    project.write_job(steps=[step("a", reviews=[review()]), step("b")])
    project.write(".deepwork/config.yml", "quality_gate: {runner: person}\n")
    project.write("a.md", TEXT)
    project.write("b.md")
    return project


@pytest.fixture
async def desk(by_person):
    """The door of the person: the project as pages and commands have it."""
    project = project_at(by_person.root)
    yield project
    await project.close()


@pytest.fixture
async def agent(by_person):
    async with by_person.agent(external_runner="person") as agent:
        agent.session_id = (await agent.start())["session_id"]
        yield agent


async def test_a_step_waits_for_a_person_and_passes_when_they_say_so(agent, desk, stored):
    reply = await agent.finish(DONE)
    assert reply["status"] == "needs_work"
    assert reply["waits_for"]["kind"] == "person"
    assert reply["waits_for"]["where"] == f"sessions:{agent.session_id}.a"
    before = stored()
    assert await agent.finish(DONE) == reply
    assert stored() == before  # no second question is asked, and nothing is written
    assert before["step_progress"]["a"]["quality_attempts"] == 0
    await desk.pieces().decide(agent.session_id, "a", Answer("pass"), ADA)
    assert (await agent.finish(DONE, notes="Other notes"))["status"] == "next_step"
    [decision, said_again] = [entry["detail"] for entry in stored()["history"] if entry["kind"] == "verdict"]
    assert (decision["runner"], decision["by"], decision["user"]) == ("person", "person", "ada")
    assert said_again["reused"]


async def test_comments_reach_the_agent_and_stay_with_it(agent, desk, by_person):
    await agent.finish(DONE)
    comments = [
        {"file": "a.md", "line": 3, "text": "Shorter", "must": True},
        {"file": "a.md", "line": 7, "end_line": 8, "text": "One line?", "suggestion": "Line 7 and 8"},
    ]
    await desk.pieces().decide(agent.session_id, "a", Answer("changes", "Not yet", comments=comments), ADA)
    reply = await agent.finish(DONE)
    assert "Not yet" in reply["feedback"]
    first, second = reply["comments"]
    assert first == {"id": "c1", "file": "a.md", "line": 3, "quoted": "Line 3", "text": "Shorter", "must": True}
    assert second["suggestion"].splitlines()[2:] == [
        "@@ -6,4 +6,3 @@",
        " Line 6",
        "-Line 7",
        "-Line 8",
        "+Line 7 and 8",
        " Line 9",
    ]
    texts = ("quoted", "text", "suggestion", "file")
    for comment in reply["comments"]:
        own = json.dumps({**comment, **{name: "" for name in texts if name in comment}})
        assert tokens_of("", "", own) <= 60
    assert (await agent.finish(DONE))["comments"] == reply["comments"]  # the same call
    by_person.write("a.md", "New\n" + TEXT)
    named = await agent.finish(DONE)
    assert "c1" in named["feedback"]
    assert "comments" not in named
    waiting = await agent.finish(DONE, notes="c1: It is short already\nc2: No")
    assert waiting["waits_for"]["kind"] == "person"
    assert waiting["notices"] == ["Open, and a must: c1."]
    assert "comments" not in waiting
    assert await agent.finish(DONE) == waiting
    piece = (await desk.pieces().piece(agent.session_id, "a")).as_json()
    assert [attempt["number"] for attempt in piece["attempts"]] == [1, 2]
    assert piece["waiting"]["attempt"] == 2
    assert piece["comments"][0]["place"] == {"attempt": 2, "line": 4, "end_line": 4}
    assert piece["comments"][0]["answers"][0]["text"] == "It is short already"
    assert json.dumps(piece)
    contents = await desk.pieces().contents(agent.session_id, "a", [(1, "a.md"), (1, "none.md"), (7, "a.md")])
    assert contents == {(1, "a.md"): TEXT.encode()}


async def test_of_two_people_the_first_decides_and_the_other_is_told(agent, desk):
    await agent.finish(DONE)
    [item] = (await desk.inbox().items(ADA)).items
    assert [action.name for action in item.actions] == ["pass", "changes", "retry", "abort"]
    comment = {"file": "a.md", "line": 1, "text": "No"}
    await desk.inbox().answer(item.id, Answer("changes", state=item.state, comments=[comment]), ADA)
    with pytest.raises(ItemChanged):
        await desk.inbox().answer(item.id, Answer("pass", state=item.state), BOB)
    with pytest.raises(ItemChanged):
        await desk.pieces().decide(agent.session_id, "a", Answer("pass"), BOB)


async def test_only_a_person_decides_and_only_about_lines_that_there_are(agent, desk, stored):
    await agent.finish(DONE)
    before = stored()
    pieces = desk.pieces()
    with pytest.raises(PersonNeeded):
        await pieces.decide(agent.session_id, "a", Answer("pass"), Answerer(user="ada"))
    for comment in ({"file": "a.md", "line": 11}, {"file": "b.md", "line": 1}, {"file": "a.md", "line": True}):
        with pytest.raises(ArgumentError):
            await pieces.decide(agent.session_id, "a", Answer("changes", comments=[{"text": "No", **comment}]), ADA)
    with pytest.raises(ArgumentError):
        await pieces.decide(agent.session_id, "a", Answer("changes", " "), ADA)
    assert stored() == before


async def test_a_draft_is_kept_for_its_writer_alone(agent, desk, by_person):
    pieces = desk.pieces()
    await pieces.save_draft(agent.session_id, "a", 1, ADA, {"comments": [1]})
    again = project_at(by_person.root).pieces()
    assert await again.load_draft(agent.session_id, "a", 1, ADA) == {"comments": [1]}
    assert await again.load_draft(agent.session_id, "a", 2, ADA) is None
    assert await again.load_draft(agent.session_id, "a", 1, Answerer(principal="bob", client="dashboard")) is None
    await pieces.save_draft(agent.session_id, "a", 1, ADA, None)
    assert await again.load_draft(agent.session_id, "a", 1, ADA) is None


async def test_an_agent_that_remembers_nothing_is_told_the_open_comments_and_a_pass_settles_them(agent, desk, stored):
    await agent.finish(DONE)
    comments = [
        {"file": "a.md", "line": 3, "text": "Shorter"},
        {"file": "a.md", "line": 4, "text": "Longer", "must": True},
    ]
    await desk.pieces().decide(agent.session_id, "a", Answer("changes", comments=comments), ADA)
    where = await agent.finish({}, step_id="?")
    assert "| c2 (a.md:4, must): Longer\n| c1 (a.md:3): Shorter" in where["feedback"]
    await agent.finish(DONE, notes="c1: It cannot be\nc2: It is")
    where = await agent.finish({}, step_id="?")
    assert "Shorter" not in where["feedback"]
    await desk.pieces().decide(agent.session_id, "a", Answer("pass"), BOB)
    piece = (await desk.pieces().piece(agent.session_id, "a")).as_json()
    assert [comment["state"] for comment in piece["comments"]] == ["resolved", "resolved"]
    assert piece["attempts"][0]["result"] == "passed"
    assert [reviewer["by"] for reviewer in piece["attempts"][0]["reviewers"]] == ["bob"]
    assert (await agent.finish(DONE))["status"] == "next_step"


async def test_what_a_person_asks_for_counts_as_no_attempt_and_waiting_as_no_failure(agent, desk, by_person, stored):
    for number in range(5):
        by_person.write("a.md", f"{TEXT}{number}\n")
        assert (await agent.finish(DONE))["waits_for"]
        await desk.pieces().decide(agent.session_id, "a", Answer("changes", "Again"), ADA)
        assert "counts as no attempt" in (await agent.finish(DONE))["feedback"]
    progress = stored()["step_progress"]["a"]
    assert (progress["quality_attempts"], progress["runner_failures"]) == (0, 0)
    piece = (await desk.pieces().piece(agent.session_id, "a")).as_json()
    assert [attempt["result"] for attempt in piece["attempts"]] == ["needs_work"] * 5


async def test_nobody_reads_what_another_reviewer_refuses(by_person, judge, plugins_with):
    by_person.write(
        ".deepwork/config.yml", "quality_gate: {runner: lint, runners: [{step: a, runner: [lint, person]}]}\n"
    )
    lint = judge(lambda _: NeedsWork("Not linted"))
    server = by_person.server(external_runner="lint", plugins=plugins_with(lint=lint))
    async with by_person.agent(server) as agent:
        await agent.start()
        refused = await agent.finish(DONE)
        assert "waits_for" not in refused
        by_person.write("a.md", "Linted\n")
        lint.answer = lambda _: Passed()
        assert (await agent.finish(DONE))["waits_for"]["kind"] == "person"
        assert (await agent.finish(DONE))["waits_for"]["kind"] == "person"
        assert len(lint.requests) == 2


@pytest.mark.parametrize("runners", ["[person, lint]", "[self, person]"])
async def test_a_person_stands_last_and_not_beside_self(by_person, runners):
    by_person.write(".deepwork/config.yml", f"quality_gate: {{runners: [{{runner: {runners}}}]}}\n")
    with pytest.raises(ConfigError, match="a person comes last"):
        by_person.server()


async def test_a_strict_gate_takes_a_person_for_a_reviewer(by_person, desk):
    by_person.write(".deepwork/config.yml", "quality_gate: {strict: true, runner: person}\n")
    async with by_person.agent(external_runner="person") as agent:
        session_id = (await agent.start())["session_id"]
        assert (await agent.finish(DONE))["waits_for"]
        await desk.pieces().decide(session_id, "a", Answer("pass"), ADA)
        assert (await agent.finish(DONE))["status"] == "next_step"


async def test_a_review_that_nobody_makes_is_overdue_and_stays_one(by_person, agent):
    by_person.write(".deepwork/config.yml", "quality_gate: {runner: person, person_after: 3d}\n")
    await agent.finish(DONE)
    for state, age in (("sharp", 0), ("overdue", 4)):
        [file] = by_person.state.glob("session_*.json")
        late = (datetime.now(UTC) - timedelta(days=age)).isoformat()
        data = json.loads(file.read_text())
        data["history"] = [
            {**entry, "at": late} if entry["kind"] == "person_asked" else entry for entry in data["history"]
        ]
        data["updated_at"] = late
        file.write_text(json.dumps(data))
        project = project_at(by_person.root)
        [item] = (await project.inbox().items(ADA)).items
        assert (item.urgency == 1, "overdue" in item.what) == (state == "overdue", state == "overdue")
        await project.close()
    assert (await agent.finish(DONE))["status"] == "needs_work"


async def test_more_comments_than_a_reply_has_room_for_are_in_a_file(agent, desk, by_person):
    await agent.finish(DONE)
    comments = [{"file": "a.md", "line": 1 + number % 10, "text": f"Text {number}"} for number in range(60)]
    await desk.pieces().decide(agent.session_id, "a", Answer("changes", comments=comments), ADA)
    reply = await agent.finish(DONE)
    assert [comment["text"] for comment in reply["comments"]] == [f"Text {number}" for number in range(50)]
    [notice] = [notice for notice in reply["notices"] if "60 comments" in notice]
    file = by_person.root / notice.rpartition(" in ")[2].rstrip(".")
    assert [comment["text"] for comment in json.loads(file.read_text())] == [f"Text {number}" for number in range(60)]


async def test_the_same_files_with_an_answer_to_each_must_ask_the_person_again(agent, desk, stored):
    await agent.finish(DONE)
    comments = [{"file": "a.md", "line": line, "text": "Why?", "must": True} for line in (1, 2)]
    await desk.pieces().decide(agent.session_id, "a", Answer("changes", comments=comments), ADA)
    await agent.finish(DONE)
    refused = await agent.finish(DONE, notes="c1: Because")
    assert "a must: c2. Nobody was asked again" in refused["feedback"]
    assert "waits_for" not in refused
    first = (await desk.pieces().piece(agent.session_id, "a")).as_json()
    assert (first["item"], first["comments"][0]["answers"][0]["text"]) == (None, "Because")
    assert (await agent.finish(DONE, notes="- c2: So"))["waits_for"]
    again = (await desk.pieces().piece(agent.session_id, "a")).as_json()
    assert [attempt["number"] for attempt in again["attempts"]] == [1]
    assert again["waiting"]["attempt"] == 1


async def test_a_step_that_was_begun_again_is_reviewed_again_and_keeps_its_comments(agent, desk, by_person):
    await agent.finish(DONE)
    comment = {"file": "a.md", "line": 2, "text": "Why?"}
    await desk.pieces().decide(agent.session_id, "a", Answer("changes", comments=[comment]), ADA)
    await agent.finish(DONE, notes="c1: So")
    changes = desk.interventions()
    await changes.go_back(await changes.named(agent.session_id), "a", "Once more", ADA)
    assert (await agent.finish(DONE))["waits_for"]
    piece = (await desk.pieces().piece(agent.session_id, "a")).as_json()
    assert [attempt["result"] for attempt in piece["attempts"]] == ["not_judged", "waiting"]
    assert piece["comments"][0]["place"] == {"attempt": 2, "line": 2, "end_line": 2}


async def test_without_strict_an_override_skips_a_person_and_nobody_is_awaited_then(agent, desk):
    await agent.finish(DONE)
    assert (await agent.finish(DONE, quality_review_override_reason="Late"))["status"] == "next_step"
    piece = (await desk.pieces().piece(agent.session_id, "a")).as_json()
    assert (piece["item"], piece["waiting"], piece["attempts"][0]["result"]) == (None, None, "not_judged")


async def test_any_runner_may_have_the_step_wait(by_person, judge, plugins_with, desk):
    runner = judge(lambda _: Waiting("desk 7", "Desk 7 has it."))
    runner.as_given = True
    async with by_person.agent(by_person.server(external_runner="desk", plugins=plugins_with(desk=runner))) as agent:
        session_id = (await agent.start())["session_id"]
        reply = await agent.finish(DONE)
        assert (reply["feedback"], reply["waits_for"]["where"]) == ("Desk 7 has it.", "desk 7")
        assert await agent.finish(DONE) == reply
        await desk.pieces().decide(session_id, "a", Answer("pass"), ADA)
        assert (await agent.finish(DONE))["status"] == "next_step"
        assert len(runner.requests) == 1


async def test_files_that_look_like_secrets_are_marked_and_large_ones_are_listed_only(project):
    outputs = {"all": {"type": "files", "description": "All", "required": True}}
    project.write_job(steps=[step("a", outputs=outputs, reviews=[review("all")])])
    project.write(".env", "PORT=80\n")
    project.write("a.py", "key = 1\napi_key = 'abcdefgh1234'\n")
    project.write("big.csv", "a,b\n" * 3 * 1024**2)
    project.write("image.png", b"\x89PNG\0")
    project.write("data.bin", b"\0")
    paths = [".env", "a.py", "big.csv", "image.png", "data.bin"]
    async with project.agent(external_runner="person") as agent:
        session_id = (await agent.start())["session_id"]
        await agent.finish({"all": paths})
    desk = project_at(project.root)
    files = (await desk.pieces().piece(session_id, "a")).as_json()["attempts"][0]["files"]
    assert [(file["path"], file["kind"], file["kept"], file["secret"]) for file in files] == [
        (".env", "text", True, True),
        ("a.py", "text", True, True),
        ("big.csv", "csv", False, False),
        ("image.png", "image", True, False),
        ("data.bin", "binary", True, False),
    ]
    await desk.close()


async def test_what_was_seen_before_the_agent_reported_again_is_not_decided(agent, desk, by_person):
    await agent.finish(DONE)
    [earlier] = (await desk.inbox().items(ADA)).items
    by_person.write("a.md", "Other\n")
    await agent.finish(DONE)
    comment = {"file": "a.md", "line": 1, "text": "No"}
    with pytest.raises(ItemChanged):
        await desk.inbox().answer(earlier.id, Answer("changes", state=earlier.state, comments=[comment]), ADA)
    with pytest.raises(ItemChanged):
        await desk.pieces().decide(agent.session_id, "a", Answer("pass", state=earlier.state), ADA)
    [now] = (await desk.inbox().items(ADA)).items
    assert now.state != earlier.state
    await desk.pieces().decide(agent.session_id, "a", Answer("pass", state=now.state), ADA)


async def test_what_goes_back_to_the_agent_waits_until_the_person_has_passed(by_person, desk):
    outputs = {name: {"type": "file", "description": name, "required": True} for name in ("a.md", "b.md")}
    by_person.write_job(steps=[step("a", outputs=outputs, reviews=[review("a.md"), review("b.md")])])
    by_person.write(".deepwork/config.yml", "quality_gate: {runners: [{review: a.md, runner: person}]}\n")
    both_files = {"a.md": "a.md", "b.md": "b.md"}
    async with by_person.agent() as agent:
        session_id = (await agent.start())["session_id"]
        waiting = await agent.finish(both_files)
        assert waiting["waits_for"]
        assert [*by_person.state.glob("quality_review_*")] == []
        await desk.pieces().decide(session_id, "a", Answer("pass"), ADA)
        assert "subagent" in (await agent.finish(both_files))["feedback"]


async def test_comments_that_other_files_were_answered_with_are_not_told_again(agent, desk, by_person):
    await agent.finish(DONE)
    comment = {"file": "a.md", "line": 3, "text": "Shorter", "must": True}
    await desk.pieces().decide(agent.session_id, "a", Answer("changes", comments=[comment]), ADA)
    by_person.write("a.md", f"New\n{TEXT}")  # the agent has not heard of it yet
    named = await agent.finish(DONE)
    assert "a must: c1" in named["feedback"]
    assert [comment["line"] for comment in named["comments"]] == [4]
    assert await agent.finish(DONE) == named
    by_person.write("a.md", TEXT.replace("Line 3", "3"))
    waiting = await agent.finish(DONE)
    assert waiting["waits_for"]
    assert "comments" not in waiting


async def test_a_decision_answers_a_report_with_other_notes_also_for_the_reviewers_before_the_person(
    by_person, judge, plugins_with, desk
):
    by_person.write(".deepwork/config.yml", "quality_gate: {runners: [{step: a, runner: [lint, person]}]}\n")
    lint = judge(lambda _: Passed())
    async with by_person.agent(by_person.server(plugins=plugins_with(lint=lint))) as agent:
        session_id = (await agent.start())["session_id"]
        await agent.finish(DONE)
        comment = {"file": "a.md", "line": 1, "text": "Why?", "must": True}
        await desk.pieces().decide(session_id, "a", Answer("changes", comments=[comment]), ADA)
        await agent.finish(DONE)
        lint.answer = lambda _: NeedsWork("On second thought, no")
        assert (await agent.finish(DONE, notes="c1: Because"))["waits_for"]
        await desk.pieces().decide(session_id, "a", Answer("pass"), ADA)
        assert (await agent.finish(DONE, notes="Other notes"))["status"] == "next_step"
        assert len(lint.requests) == 1


async def _at_the_same_time(by_person, judge, plugins_with, meanwhile):
    """Have two servers report a step at once; the first has its person decide before the other one is judged."""
    by_person.write(".deepwork/config.yml", "quality_gate: {runners: [{step: a, runner: [lint, person]}]}\n")
    quick, slow = judge(lambda _: Passed()), judge(lambda _: Passed())
    slow.hold = True
    replies = []
    async with (
        by_person.agent(by_person.server(plugins=plugins_with(lint=slow))) as late,
        by_person.agent(by_person.server(plugins=plugins_with(lint=quick))) as early,
    ):
        session_id = (await late.start())["session_id"]

        async def report():
            replies.append(await late.finish(DONE, session_id=session_id))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(report)
            await slow.asked.wait()
            early.session_id = session_id
            await meanwhile(early)
            slow.release.set()
    return replies[0]


async def test_two_reports_of_the_same_files_at_once_ask_once_and_keep_the_decision(
    by_person, judge, plugins_with, desk, stored
):
    async def meanwhile(agent):
        waits_for = (await agent.finish(DONE, session_id=agent.session_id))["waits_for"]
        await desk.pieces().decide(agent.session_id, "a", Answer("pass"), ADA)
        seen.append(waits_for)

    seen = []
    late = await _at_the_same_time(by_person, judge, plugins_with, meanwhile)
    assert [late["waits_for"]] == seen
    assert sum(entry["kind"] == "person_asked" for entry in stored()["history"]) == 1
    lint = judge(lambda _: Passed())
    async with by_person.agent(by_person.server(plugins=plugins_with(lint=lint))) as agent:
        assert (await agent.finish(DONE, session_id=stored()["session_id"]))["status"] == "next_step"


async def test_a_report_that_another_one_has_replaced_asks_nobody(by_person, judge, plugins_with, desk, stored):
    other = {"a.md": "b.md"}

    async def meanwhile(agent):
        assert (await agent.finish(other, session_id=agent.session_id))["waits_for"]

    late = await _at_the_same_time(by_person, judge, plugins_with, meanwhile)
    assert "waits_for" not in late
    assert "Something else was reported" in late["feedback"]
    session_id = stored()["session_id"]
    await desk.pieces().decide(session_id, "a", Answer("pass"), ADA)  # about the last report
    lint = judge(lambda _: Passed())
    async with by_person.agent(by_person.server(plugins=plugins_with(lint=lint))) as agent:
        assert (await agent.finish(DONE, session_id=session_id))["waits_for"]
        assert (await agent.finish(other, session_id=session_id))["status"] == "next_step"
