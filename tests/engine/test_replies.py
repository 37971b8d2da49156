"""What an agent gets to begin a step, and that a running session keeps the definition it started with."""

from __future__ import annotations

import pytest
import yaml

from deepwork.testing import output, review, step

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}
CHANGED = "The job's definition has changed since this session started; it goes on as it began."


@pytest.fixture
def chain(project):
    """A job of four steps, and the files of all of them."""
    project.write_job(steps=[step(name) for name in "abcd"])
    for name in "abcd":
        project.write(f"{name}.md")
    return project


def edit(project, change):
    """Change the job file as a person would."""
    file = project.jobs / "demo" / "job.yml"
    content = yaml.safe_load(file.read_text())
    change(content)
    file.write_text(yaml.safe_dump(content, sort_keys=False))


def instructions(project, step_id):
    return project.jobs / "demo" / "steps" / f"{step_id}.md"


# Instructions ----------------------------------------------------------------------------------------------------

TEXTS = [
    "plain\n",
    "no end of line",
    "  \n\n  indented\t\n\n",
    "a\r\nb\rc",
    "\ufeffmarked",
    "{goal} %s $x \\n",
    "日本 🙂\x85",
    "",
]


@pytest.mark.parametrize("text", TEXTS)
async def test_instructions_are_the_text_of_the_file_unchanged(project, text):
    project.write_job()
    instructions(project, "a").write_bytes(text.encode())
    async with project.agent() as agent:
        assert (await agent.start())["step_instructions"] == text


@pytest.mark.parametrize("text", TEXTS)
async def test_later_instructions_are_unchanged_too(chain, text):
    instructions(chain, "b").write_bytes(text.encode())
    async with chain.agent() as agent:
        await agent.start()
        assert (await agent.finish(DONE))["begin_step"]["step_instructions"] == text


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"\xff", "is not UTF-8 text"), (b"x" * (1024 * 1024 + 1), "is larger than 1,048,576 bytes")],
)
async def test_instructions_that_cannot_be_given_are_refused(project, content, words):
    project.write_job()
    instructions(project, "a").write_bytes(content)
    async with project.agent() as agent:
        text = await agent.refused("start_workflow", goal="g", job_name="demo", workflow_name="main")
    assert text.startswith(f"Instructions file {words}: 'steps/a.md' of step 'a' in {project.jobs / 'demo'}")


async def test_instructions_outside_of_the_jobs_folder_are_refused_though_inside_the_project(project):
    project.write_job()
    project.write("outside.md")
    instructions(project, "a").unlink()
    instructions(project, "a").symlink_to(project.root / "outside.md")
    async with project.agent() as agent:
        text = await agent.refused("start_workflow", goal="g", job_name="demo", workflow_name="main")
    assert "lies outside of the job's folder" in text


async def test_a_link_within_the_jobs_folder_is_followed(project):
    project.write_job()
    instructions(project, "b").rename(project.jobs / "demo" / "shared.md")
    instructions(project, "b").symlink_to("../shared.md")
    project.write("a.md")
    async with project.agent() as agent:
        await agent.start()
        assert (await agent.finish(DONE))["begin_step"]["step_instructions"] == "Instructions for b\n"


# A missing file ----------------------------------------------------------------------------------------------------


async def test_a_missing_first_instruction_file_leaves_no_session(project):
    project.write_job()
    instructions(project, "a").unlink()
    async with project.agent() as agent:
        text = await agent.refused("start_workflow", goal="g", job_name="demo", workflow_name="main")
        assert text.startswith("Instructions file not found: 'steps/a.md' of step 'a'")
        assert "No active workflow session" in await agent.refused("finished_step", outputs={})
        assert list(project.state.glob("session_*")) == []
        project.write(instructions(project, "a"))
        assert (await agent.start())["step_id"] == "a"


async def test_a_missing_next_instruction_file_changes_nothing_and_the_next_call_works(chain, stored):
    instructions(chain, "b").unlink()
    async with chain.agent() as agent:
        begin = await agent.start()
        before = stored()
        text = await agent.refused("finished_step", outputs=DONE)
        assert text.startswith("Instructions file not found: 'steps/b.md' of step 'b'")
        assert "Nothing was changed" in text
        assert stored() == before
        chain.write(instructions(chain, "b"), "there again\n")
        reply = await agent.finish(DONE)
    assert reply["begin_step"]["step_instructions"] == "there again\n"
    assert reply["begin_step"]["session_id"] == begin["session_id"]


async def test_a_missing_next_instruction_file_is_found_before_a_review_is_asked_for(project):
    project.write_job(steps=[step("a", reviews=[review()]), step("b")])
    project.write("a.md")
    instructions(project, "b").unlink()
    async with project.agent() as agent:
        await agent.start()
        assert "Instructions file not found" in await agent.refused("finished_step", outputs=DONE)
    assert list(project.state.glob("quality_review_*")) == []


async def test_the_files_of_all_members_of_the_next_group_are_read_before_anything_changes(project, stored):
    project.write_job(steps=[step(name) for name in "abc"], workflows={"main": ["a", ["b", "c"]]})
    project.write("a.md")
    instructions(project, "c").unlink()
    async with project.agent() as agent:
        await agent.start()
        before = stored()
        assert "'steps/c.md' of step 'c'" in await agent.refused("finished_step", outputs=DONE)
        assert stored() == before


# Groups ----------------------------------------------------------------------------------------------------------


async def test_a_group_that_opens_a_workflow_is_announced_too(project):
    project.write_job(steps=[step(name) for name in "abc"], workflows={"main": [["b", "a", "c"]]})
    async with project.agent() as agent:
        begin = await agent.start()
    assert begin["step_id"] == "b"
    text, _, message = begin["step_instructions"].partition("\n\n**CONCURRENT STEPS**\n\n")
    assert text == "Instructions for b\n"
    assert "3 steps" in message
    assert "b, a, c" in message
    assert "Task tool" in message


async def test_a_group_of_one_is_a_plain_step(project):
    project.write_job(workflows={"main": [["a"], "b"]})
    async with project.agent() as agent:
        begin = await agent.start()
    assert begin["step_instructions"] == "Instructions for a\n"
    assert begin.get("concurrent_steps", []) == []


async def test_the_other_members_of_a_group_come_with_all_they_need(project):
    steps = [
        step("a"),
        step("b"),
        step(
            "c",
            outputs={"c": output("files", required=False)},
            reviews=[review(additional_review_guidance="Look twice")],
            dependencies=["a"],
            inputs=[{"file": "a.md", "from_step": "a"}, {"name": "who", "description": "For whom"}],
        ),
    ]
    project.write_job(steps=steps, workflows={"main": ["a", ["b", "c"]]})
    project.write("a.md")
    async with project.agent() as agent:
        await agent.start()
        [member] = (await agent.finish(DONE))["begin_step"].get("concurrent_steps", [])
    assert member == {
        "step_id": "c",
        "step_expected_outputs": [
            {
                "name": "c",
                "type": "files",
                "description": "A files",
                "required": False,
                "syntax_for_finished_step_tool": "array of filepaths for all individual files",
            }
        ],
        "step_reviews": [
            {
                "run_each": "step",
                "quality_criteria": {"Good": "Is it good?"},
                "additional_review_guidance": "Look twice",
            }
        ],
        "step_inputs": [
            {"name": "a.md", "from_step": "a", "path": "a.md"},
            {"name": "who", "description": "For whom"},
        ],
        "step_instructions": "Instructions for c\n",
    }


# Inputs ----------------------------------------------------------------------------------------------------------


async def test_inputs_come_with_the_paths_that_were_reported(project):
    outputs = {"report": output(), "parts": output("files"), "extra": output(required=False)}
    inputs = [{"file": name, "from_step": "a"} for name in outputs] + [{"name": "tone", "description": "Which tone"}]
    project.write_job(steps=[step("a", outputs=outputs), step("b", inputs=inputs, dependencies=["a"])])
    for name in ("out/r 1.md", "p1", "p2"):
        project.write(name)
    async with project.agent() as agent:
        await agent.start()
        begin = (await agent.finish({"parts": ["p2", "p1"], "report": "./out/r 1.md"}))["begin_step"]
    assert begin.get("step_inputs", []) == [
        {"name": "report", "from_step": "a", "path": "out/r 1.md"},
        {"name": "parts", "from_step": "a", "path": ["p2", "p1"]},
        {"name": "extra", "from_step": "a"},
        {"name": "tone", "description": "Which tone"},
    ]


async def test_inputs_of_the_first_step_are_what_it_asks_of_the_user(project):
    project.write_job(steps=[step("a", inputs=[{"name": "tone", "description": "Which tone"}])])
    async with project.agent() as agent:
        begin = await agent.start()
    assert begin.get("step_inputs", []) == [{"name": "tone", "description": "Which tone"}]


async def test_inputs_may_come_from_a_member_of_a_group(project):
    last = step("c", inputs=[{"file": "b.md", "from_step": "b"}], dependencies=["b"])
    project.write_job(steps=[step("a"), step("b"), last], workflows={"main": [["a", "b"], "c"]})
    project.write("a.md")
    project.write("made/by_b.md")
    async with project.agent() as agent:
        begin = await agent.start()
        await agent.finish({"b.md": "made/by_b.md"}, session_id=begin["session_id"], step_id="b")
        begin = (await agent.finish(DONE))["begin_step"]
    assert [item["path"] for item in begin.get("step_inputs", [])] == ["made/by_b.md"]


async def test_a_step_without_inputs_has_an_empty_list(project):
    project.write_job()
    async with project.agent() as agent:
        assert (await agent.start()).get("step_inputs", []) == []


# The definition is pinned ----------------------------------------------------------------------------------------


def removed_step(content):
    content["steps"] = [item for item in content["steps"] if item["id"] != "b"]
    content["workflows"][0]["steps"].remove("b")


def inserted_step(content):
    content["steps"].insert(0, step("z"))
    content["workflows"][0]["steps"].insert(0, "z")


def reordered_steps(content):
    content["workflows"][0]["steps"].reverse()


def renamed_workflow(content):
    content["workflows"][0]["name"] = "other"


def new_output(content):
    content["steps"][2]["outputs"]["more"] = output()


def new_review(content):
    content["steps"][2]["reviews"] = [review()]


def new_common_info(content):
    content["common_job_info_provided_to_all_steps_at_runtime"] = "Something else"


def grouped_steps(content):
    content["workflows"][0]["steps"] = ["a", ["b", "c"], "d"]


EDITS = [
    removed_step,
    inserted_step,
    reordered_steps,
    renamed_workflow,
    new_output,
    new_review,
    new_common_info,
    grouped_steps,
]


async def finish_all(agent, steps):
    """Finish these steps one after the other; gives the replies."""
    return [await agent.finish({f"{name}.md": f"{name}.md"}) for name in steps]


@pytest.mark.parametrize("change", EDITS)
async def test_an_edit_of_the_job_never_shifts_or_skips_steps_and_is_told(chain, change):
    async with chain.agent() as agent:
        await agent.start()
        before = await agent.finish(DONE)
        edit(chain, change)
        replies = await finish_all(agent, "bcd")
    assert CHANGED not in before.get("notices", [])
    assert [reply["begin_step"]["step_id"] for reply in replies[:2]] == ["c", "d"]
    assert [CHANGED in reply.get("notices", []) for reply in replies[:2]] == [True, True]
    assert [reply["begin_step"]["common_job_info"] for reply in replies[:2]] == ["About demo"] * 2
    assert replies[0]["begin_step"]["step_expected_outputs"] == [
        before["begin_step"]["step_expected_outputs"][0] | {"name": "c.md"}
    ]
    assert replies[2]["status"] == "workflow_complete"
    assert replies[2]["all_outputs"] == {f"{name}.md": f"{name}.md" for name in "abcd"}


async def test_a_job_that_was_broken_meanwhile_does_not_stop_its_session(chain):
    async with chain.agent() as agent:
        await agent.start()
        (chain.jobs / "demo" / "job.yml").write_text("name: [")
        replies = await finish_all(agent, "abcd")
    assert CHANGED in replies[0].get("notices", [])
    assert replies[-1]["status"] == "workflow_complete"


async def test_a_session_whose_job_was_removed_goes_on_once_it_is_there_again(chain):
    """Instructions are read only from folders that a job source gives; a session file may name any folder."""
    async with chain.agent() as agent:
        await agent.start()
        file = chain.jobs / "demo" / "job.yml"
        content = file.read_text()
        file.unlink()
        assert "Restore the job and call again" in await agent.refused("finished_step", outputs=DONE)
        file.write_text(content)
        assert (await finish_all(agent, "abcd"))[-1]["status"] == "workflow_complete"


@pytest.mark.parametrize("text", ["# a comment\n", "\n\n"])
async def test_an_edit_that_means_nothing_is_not_told(chain, text):
    async with chain.agent() as agent:
        await agent.start()
        file = chain.jobs / "demo" / "job.yml"
        file.write_text(text + file.read_text())
        assert (await agent.finish(DONE)).get("notices", []) == []


async def test_an_edit_of_another_workflow_is_not_told(project):
    project.write_job(workflows={"main": ["a", "b"], "other": ["a"]})
    project.write("a.md")
    async with project.agent() as agent:
        await agent.start()
        edit(project, lambda content: content["workflows"][1].update(steps=["b"]))
        assert (await agent.finish(DONE)).get("notices", []) == []


async def test_a_new_session_takes_the_new_definition(chain):
    async with chain.agent() as agent:
        await agent.start()
        edit(chain, inserted_step)
        chain.write(instructions(chain, "z"))
        assert (await agent.start())["step_id"] == "z"


async def test_the_text_of_a_step_is_kept_as_it_was_when_the_step_began(chain):
    async with chain.agent() as agent:
        begin = await agent.start()
        ids = {"session_id": begin["session_id"], "step_id": "a"}
        first = await agent.finish(DONE, **ids)
        instructions(chain, "b").write_text("quite another text\n")
        again = await agent.finish(DONE, **ids)
    assert again["begin_step"] == first["begin_step"]


async def test_a_text_edited_before_its_step_begins_is_given_as_edited(chain):
    async with chain.agent() as agent:
        await agent.start()
        instructions(chain, "b").write_text("a better text\n")
        assert (await agent.finish(DONE))["begin_step"]["step_instructions"] == "a better text\n"


async def test_a_review_that_was_pinned_is_held_though_the_job_no_longer_has_it(project):
    project.write_job(steps=[step("a"), step("b", reviews=[review()])])
    project.write("a.md")
    project.write("b.md")
    async with project.agent() as agent:
        await agent.start()
        edit(project, lambda content: content["steps"][1].update(reviews=[]))
        await agent.finish(DONE)
        assert (await agent.finish({"b.md": "b.md"}))["status"] == "needs_work"
