"""Concurrent groups: members are reported one by one, and the primary moves the group on."""

import pytest

from deepwork.testing import output, review, step

pytestmark = pytest.mark.anyio


def member(begin, step_id):
    return {"session_id": begin["session_id"], "step_id": step_id}


async def test_a_group_that_opens_a_workflow_is_announced(demo):
    async with demo.agent() as agent:
        begin = await agent.start(workflow="opening")
    assert begin["step_id"] == "b"
    assert "**CONCURRENT STEPS**" in begin["step_instructions"]


async def test_a_group_in_the_middle_is_announced(demo):
    async with demo.agent() as agent:
        await agent.start(workflow="grouped")
        begin = (await agent.finish({"a.md": "a.md"}))["begin_step"]
    assert begin["step_id"] == "b"
    assert "**CONCURRENT STEPS**" in begin["step_instructions"]
    assert [entry["step_id"] for entry in begin.get("concurrent_steps", [])] == ["c"]


async def test_a_single_step_is_announced_as_no_group(demo):
    async with demo.agent() as agent:
        begin = await agent.start()
    assert begin.get("concurrent_steps", []) == []
    assert "CONCURRENT" not in begin["step_instructions"]


async def test_the_text_gives_count_ids_tool_and_order(demo):
    async with demo.agent() as agent:
        begin = await agent.start(workflow="opening")
    text = begin["step_instructions"].partition("**CONCURRENT STEPS**")[2]
    assert "2 steps are to be done at the same time: b, c" in text
    assert "Task tool" in text
    assert f"Report those first, each by finished_step(session_id={begin['session_id']!r}, step_id=<its id>" in text
    assert "'b' last" in text


async def test_every_other_member_comes_with_instructions_outputs_reviews_and_inputs(project):
    project.write_job(
        steps=[
            step("a"),
            step("p"),
            step(
                "m",
                outputs={"m.md": output(), "more": output("files", required=False)},
                reviews=[review()],
                inputs=[{"name": "topic", "description": "What about"}, {"file": "a.md", "from_step": "a"}],
                dependencies=["a"],
            ),
        ],
        workflows={"main": ["a", ["p", "m"]]},
    )
    project.write("a.md")
    async with project.agent() as agent:
        await agent.start()
        (entry,) = (await agent.finish({"a.md": "a.md"}))["begin_step"].get("concurrent_steps", [])
    assert entry["step_id"] == "m"
    assert entry["step_instructions"] == "Instructions for m\n"
    assert [item["name"] for item in entry["step_expected_outputs"]] == ["m.md", "more"]
    assert entry["step_reviews"][0]["quality_criteria"] == {"Good": "Is it good?"}
    assert [(item["name"], item.get("path")) for item in entry["step_inputs"]] == [("topic", None), ("a.md", "a.md")]


async def test_a_member_without_instructions_file_keeps_the_group_from_beginning(demo, stored):
    (demo.jobs / "demo" / "steps" / "c.md").unlink()
    async with demo.agent() as agent:
        begin = await agent.start(workflow="grouped")
        text = await agent.refused("finished_step", outputs={"a.md": "a.md"}, **member(begin, "a"))
    assert "Instructions file not found: 'steps/c.md'" in text
    assert stored(begin["session_id"])["current_step_id"] == "a"


async def test_a_reported_member_is_recorded_and_answered_with_the_primarys_step(demo, stored):
    async with demo.agent() as agent:
        begin = await agent.start(workflow="opening")
        reply = await agent.finish({"c.md": "c.md"}, **member(begin, "c"))
    assert reply["status"] == "next_step"
    assert reply["begin_step"]["step_id"] == "b"
    assert "concurrent_steps" not in reply["begin_step"]
    assert (
        "Of this group only 'b' is still open; reporting it ends the group." in reply["begin_step"]["step_instructions"]
    )
    assert reply["stack"] == [{"workflow": "demo/opening", "step": "b"}]
    assert stored(begin["session_id"])["step_progress"]["c"]["outputs"] == {"c.md": "c.md"}


async def test_a_members_outputs_are_checked_against_its_own_declaration(demo):
    async with demo.agent() as agent:
        begin = await agent.start(workflow="opening")
        text = await agent.refused("finished_step", outputs={"b.md": "b.md"}, **member(begin, "c"))
    assert "Unknown outputs: b.md. Declared outputs: c.md" in text


async def test_a_members_reviews_are_held_for_it_alone(project, stored):
    project.write_job(steps=[step("p"), step("m", reviews=[review()])], workflows={"main": [["p", "m"]]})
    project.write("m.md")
    async with project.agent() as agent:
        begin = await agent.start()
        reply = await agent.finish({"m.md": "m.md"}, **member(begin, "m"))
        assert reply["status"] == "needs_work"
        assert (project.state / f"quality_review_{begin['session_id']}_m.md").exists()
        assert stored(begin["session_id"])["step_progress"]["m"]["completed_at"] is None
        passed = {"quality_review_override_reason": "All passed"}
        reply = await agent.finish({"m.md": "m.md"}, **passed, **member(begin, "m"))
    assert reply["status"] == "next_step"
    assert stored(begin["session_id"])["step_progress"]["m"]["override_reason"] == "All passed"


async def test_a_member_reported_again_with_other_outputs_replaces_its_record(demo, stored, events):
    demo.write("better.md")
    async with demo.agent() as agent:
        begin = await agent.start(workflow="opening")
        await agent.finish({"c.md": "c.md"}, **member(begin, "c"))
        reply = await agent.finish({"c.md": "better.md"}, **member(begin, "c"))
        assert reply["begin_step"]["step_id"] == "b"
        last_reply = await agent.finish({"b.md": "b.md"}, **member(begin, "b"))
    assert last_reply["begin_step"]["step_id"] == "d"
    assert stored(begin["session_id"])["step_progress"]["c"]["outputs"] == {"c.md": "better.md"}
    assert events(begin["session_id"]).count(("step_completed", "c")) == 2


async def test_a_member_reported_with_other_outputs_after_its_group_is_refused_with_the_current_step(demo, stored):
    demo.write("better.md")
    async with demo.agent() as agent:
        begin = await agent.start(workflow="opening")
        await agent.finish({"c.md": "c.md"}, **member(begin, "c"))
        await agent.finish({"b.md": "b.md"}, **member(begin, "b"))
        text = await agent.refused("finished_step", outputs={"c.md": "better.md"}, **member(begin, "c"))
    assert "already completed with other outputs; the current step is 'd'" in text
    assert stored(begin["session_id"])["step_progress"]["c"]["outputs"] == {"c.md": "c.md"}


async def test_a_member_reported_for_the_first_time_after_its_group_is_refused_with_the_current_step(demo):
    async with demo.agent() as agent:
        begin = await agent.start(workflow="opening")
        await agent.finish({"b.md": "b.md"}, **member(begin, "b"))
        text = await agent.refused("finished_step", outputs={"c.md": "c.md"}, **member(begin, "c"))
    assert "completed with its group, never reported; the current step is 'd'" in text
    assert "deepwork sessions reopen " in text


async def test_a_repeat_of_a_members_report_after_its_group_gets_the_recorded_reply(demo):
    async with demo.agent() as agent:
        begin = await agent.start(workflow="opening")
        first = await agent.finish({"c.md": "c.md"}, **member(begin, "c"))
        await agent.finish({"b.md": "b.md"}, **member(begin, "b"))
        repeat = await agent.finish({"c.md": "c.md"}, **member(begin, "c"))
    assert repeat["begin_step"] == first["begin_step"]
    assert "This step was completed before; the current step is 'd'." in repeat.get("notices", [])


async def test_a_call_without_step_id_reports_the_primary(demo, events):
    async with demo.agent() as agent:
        begin = await agent.start(workflow="opening")
        assert (await agent.finish({"b.md": "b.md"}))["begin_step"]["step_id"] == "d"
    assert ("step_completed", "b") in events(begin["session_id"])


async def test_members_never_reported_are_completed_without_outputs_and_named(demo, stored):
    async with demo.agent() as agent:
        begin = await agent.start(workflow="opening")
        reply = await agent.finish({"b.md": "b.md"}, **member(begin, "b"))
    session_id = begin["session_id"]
    assert reply["notices"] == [
        "Completed without outputs, never reported: c. To have one done after all, your user runs: "
        f"deepwork sessions reopen {session_id} c --reason TEXT"
    ]
    session = stored(begin["session_id"])
    assert session["step_progress"]["c"]["completed_at"]
    assert session["step_progress"]["c"]["outputs"] == {}
    (event,) = [event for event in session["history"] if (event["kind"], event["step_id"]) == ("step_completed", "c")]
    assert event["detail"] == {"reported": False}


async def test_a_group_at_the_end_completes_the_workflow(demo):
    async with demo.agent() as agent:
        begin = await agent.start(workflow="last")
        await agent.finish({"c.md": "c.md"}, **member(begin, "c"))
        reply = await agent.finish({"b.md": "b.md"}, **member(begin, "b"))
    assert reply["status"] == "workflow_complete"
    assert reply["all_outputs"] == {"b.md": "b.md", "c.md": "c.md"}
    assert "outputs_by_step" not in reply  # it would say the same again


async def test_inputs_of_later_steps_see_the_outputs_of_members(project):
    project.write_job(
        steps=[step("p"), step("m"), step("z", inputs=[{"file": "m.md", "from_step": "m"}], dependencies=["m"])],
        workflows={"main": [["p", "m"], "z"]},
    )
    for name in ("p.md", "made/m.md"):
        project.write(name)
    async with project.agent() as agent:
        begin = await agent.start()
        await agent.finish({"m.md": "made/m.md"}, **member(begin, "m"))
        reply = await agent.finish({"p.md": "p.md"})
    assert reply["begin_step"].get("step_inputs", [])[0]["path"] == "made/m.md"


async def test_members_are_reported_by_agents_at_the_same_time(demo, stored):
    import anyio

    demo.write_job(
        "wide",
        [step(f"s{number}", outputs={}) for number in range(9)],
        {"main": [[f"s{number}" for number in range(9)]]},
    )
    async with demo.agent() as agent:
        begin = await agent.start("wide")
        async with anyio.create_task_group() as tasks:
            for number in range(1, 9):
                tasks.start_soon(lambda number=number: agent.finish({}, **member(begin, f"s{number}")))
        reply = await agent.finish({}, **member(begin, "s0"))
    assert reply["status"] == "workflow_complete"
    assert reply.get("notices", []) == []
    assert stored(begin["session_id"])["revision"] == 10


async def test_a_repeated_report_gets_its_reply_with_the_members_that_were_open_then(project):
    project.write_job(
        steps=[step(name) for name in ("setup", "web", "docs", "talks", "compile")],
        workflows={"main": ["setup", ["web", "docs", "talks"], "compile"]},
    )
    names = ("setup", "docs", "web", "compile")
    async with project.agent() as agent:
        begin = await agent.start()
        replies = {}
        for name in names:
            project.write(f"{name}.md")
            replies[name] = await agent.finish({f"{name}.md": f"{name}.md"}, **member(begin, name))
        repeats = {name: await agent.finish({f"{name}.md": f"{name}.md"}, **member(begin, name)) for name in names[:-1]}
    assert "2 steps are to be done at the same time: web, talks" in replies["docs"]["begin_step"]["step_instructions"]
    assert [repeats[name]["begin_step"] for name in repeats] == [replies[name]["begin_step"] for name in repeats]
