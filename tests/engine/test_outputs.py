"""What an agent submits is checked, and nothing outside of the project is ever taken."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from deepwork.engine.outputs import check_outputs
from deepwork.errors import OutputError, PathRefused
from deepwork.models.jobs import StepOutput
from deepwork.paths.paths import read_regular
from deepwork.paths.workspace import Workspace
from deepwork.testing import output, step

pytestmark = pytest.mark.anyio

OUTPUTS = {"one": output(), "many": output("files"), "more": output("files", required=False)}
GOOD = {"one": "one.md", "many": ["one.md"]}
SINKS = [
    "outputs, file",
    "outputs, files",
    "job_name",
    "instructions_file",
    "session_id of finished_step",
    "session_id of abort_workflow",
    "parent_session_id",
]


@pytest.fixture
def asking(project):
    """A project whose first step asks for one file, several files, and optional ones."""
    project.write_job(steps=[step("a", outputs=OUTPUTS), step("b")])
    project.write("one.md")
    return project


async def submit(project, outputs, **options):
    async with project.agent(**options) as agent:
        await agent.start()
        return await agent.finish(outputs)


async def refused(project, outputs, **options):
    async with project.agent(**options) as agent:
        await agent.start()
        return await agent.refused("finished_step", outputs=outputs)


async def test_unknown_outputs_are_named_before_missing_ones(asking):
    assert "Unknown outputs: typo" in await refused(asking, {"typo": "x"})


async def test_missing_outputs_are_named_before_wrong_types(asking):
    text = await refused(asking, {"one": ["one.md"]})
    assert text.startswith("Missing required outputs: many (step 'a' of demo/main, session '")


async def test_wrong_types_are_named_before_missing_files(asking):
    assert "'many' is declared as type 'files'" in await refused(asking, {"one": "gone.md", "many": "one.md"})


async def test_an_empty_list_for_required_files_is_refused_in_its_own_words(asking):
    text = await refused(asking, {**GOOD, "many": []})
    assert text.startswith("Output 'many' is required: give at least one path, not an empty list (step 'a' of ")


async def test_an_empty_list_for_optional_files_is_accepted_and_kept(asking, stored):
    assert (await submit(asking, {**GOOD, "more": []}))["status"] == "next_step"
    assert stored()["step_progress"]["a"]["outputs"] == {**GOOD, "more": []}


async def test_a_step_without_outputs_is_finished_with_none(project):
    project.write_job(steps=[step("a", outputs={})])
    assert (await submit(project, {}))["all_outputs"] == {}


async def test_an_unknown_output_of_a_step_without_outputs_is_told_so(project):
    project.write_job(steps=[step("a", outputs={})])
    assert "Declared outputs: none: submit {}" in await refused(project, {"x": "x"})


async def test_a_refused_submission_changes_nothing(asking):
    async with asking.agent() as agent:
        begin = await agent.start()
        file = asking.state / f"session_{begin['session_id']}.json"
        before = file.read_bytes()
        await agent.refused("finished_step", outputs={**GOOD, "one": "gone.md"})
        assert file.read_bytes() == before
        assert (await agent.finish(GOOD))["status"] == "next_step"


@pytest.mark.parametrize("path", ["one.md", "./one.md", "sub/../one.md", "sub/link.md", "{root}/one.md", "link/one.md"])
async def test_any_path_that_ends_in_a_file_of_the_project_is_handed_on_as_it_was_resolved(asking, path):
    (asking.root / "sub").mkdir()
    (asking.root / "sub" / "link.md").symlink_to(asking.root / "one.md")
    (asking.root / "link").symlink_to(asking.root)
    outputs = {**GOOD, "one": path.format(root=asking.root)}
    async with asking.agent() as agent:
        begin = await agent.start()
        named = {"session_id": begin["session_id"], "step_id": "a"}
        reply = await agent.finish(outputs, **named)
        assert (await agent.finish(outputs, **named))["begin_step"] == reply["begin_step"]
        asking.write("b.md")
        assert (await agent.finish({"b.md": "b.md"}))["all_outputs"]["one"] == "one.md"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", "is empty"),
        ("folder", "is a folder, not a regular file"),
        (".", "is a folder, not a regular file"),
        ("fifo", "is a pipe, not a regular file"),
        ("../x", "lies outside of the project"),
        ("/etc/passwd", "lies outside of the project"),
        ("a\0b", "is not a path of this system"),
        ("a" * 4097, "is longer than 4,096 bytes"),
        ("one.md/x", "not"),
    ],
)
async def test_the_error_names_output_path_and_what_would_be_right(asking, path, words):
    (asking.root / "folder").mkdir()
    os.mkfifo(asking.root / "fifo")
    text = await refused(asking, {**GOOD, "many": ["one.md", path]})
    assert text.startswith("Output 'many': ")
    assert repr(path[:150])[1:-1] in text
    assert words in text
    assert "file in the project" in text


async def test_a_file_that_is_missing_is_told_with_the_way_to_go_on(asking):
    text = await refused(asking, {**GOOD, "one": "gone.md"})
    assert text.startswith("Output 'one': file not found at 'gone.md'; paths are relative to the project, or absolute")
    assert "finished_step again" in text


@pytest.mark.usefixtures("bound_by_permissions")
async def test_a_file_that_may_not_be_read_is_refused(asking):
    asking.write("secret.md").chmod(0)
    assert "Permission denied" in await refused(asking, {**GOOD, "one": "secret.md"})


# Hostile paths ---------------------------------------------------------------------------------------------------


def test_every_place_that_takes_a_path_is_tried(hostile):
    assert list(hostile.SINKS) == SINKS
    assert len(set(hostile.PATHS)) == len(hostile.PATHS) >= 40


@pytest.mark.parametrize("sink", SINKS)
async def test_no_hostile_path_is_accepted_and_no_answer_tells_of_the_outside(hostile, tmp_path, sink):
    grounds = hostile.make_grounds(tmp_path)
    async with grounds.project.agent() as agent:
        tried = [attempt async for attempt in hostile.SINKS[sink](grounds, agent)]
    assert len(tried) >= len(hostile.PATHS) - 1
    assert [attempt for attempt in tried if attempt.accepted] == []
    assert [attempt for attempt in tried if hostile.leaks(attempt, grounds)] == []


async def test_a_path_that_is_accepted_would_be_noticed(hostile, tmp_path):
    grounds = hostile.make_grounds(tmp_path)
    async with grounds.project.agent(grounds.project.server()) as agent:
        await agent.start("files")
        tried = await hostile._try(agent, "outputs, file", "good.md", "finished_step", outputs={"many": ["good.md"]})
    assert tried.accepted


def swapped(stop: threading.Event, place: Path, real: Path, link: Path) -> None:
    """Put now the real thing and now the link into the place, until told to stop."""
    while not stop.is_set():
        os.rename(real, place)
        os.rename(place, real)
        os.rename(link, place)
        os.rename(place, link)


@pytest.fixture
def swapping(project):
    """Swap `place` of the project for a link to the outside all the time; gives the outside."""
    outside = project.root.parent / "outside"
    (outside / "folder").mkdir(parents=True)
    (outside / "folder" / "file.md").write_text("outside")
    (outside / "folder" / "only_outside.md").write_text("outside")
    project.write("real/file.md", "inside")
    (project.root / "link").symlink_to(outside / "folder")
    stop = threading.Event()
    places = (project.root / name for name in ("place", "real", "link"))
    thread = threading.Thread(target=swapped, args=(stop, *places))
    thread.start()
    yield outside
    stop.set()
    thread.join()


ROUNDS = 2000


@pytest.mark.usefixtures("swapping")
def test_a_folder_swapped_for_a_link_while_it_is_read_never_gives_what_lies_outside(project):
    outcomes = {"read": 0, "refused": 0, "missing": 0}
    for number in count():
        try:
            content = read_regular("place/file.md", [project.root], limit=100)
            assert content == b"inside"
            outcomes["read"] += 1
        except PathRefused:
            outcomes["refused"] += 1
        except FileNotFoundError:
            outcomes["missing"] += 1
        if number >= ROUNDS and all(outcomes.values()):
            return


@pytest.mark.usefixtures("swapping")
def test_a_folder_swapped_for_a_link_while_it_is_checked_is_never_accepted(project):
    declared = {"one": StepOutput(**output())}
    refusals = set()
    for _ in range(ROUNDS):
        with pytest.raises(OutputError) as caught:
            check_outputs({"one": "place/only_outside.md"}, declared, Workspace(project.root), owner="step a")
        refusals.add(caught.value.message)
    assert len(refusals) > 1


def test_a_file_swapped_for_a_link_while_it_is_read_never_gives_what_lies_outside(project):
    secret = project.root.parent / "secret.md"
    secret.write_text("outside")
    place, real, link = (project.root / name for name in ("place.md", "real.md", "link.md"))
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            real.write_text("inside")
            os.replace(real, place)
            link.symlink_to(secret)
            os.replace(link, place)

    thread = threading.Thread(target=swap)
    thread.start()
    outcomes = {"read": 0, "refused": 0}
    try:
        for number in count():
            try:
                assert read_regular("place.md", [project.root], limit=100) == b"inside"
                outcomes["read"] += 1
            except PathRefused:
                outcomes["refused"] += 1
            except FileNotFoundError:  # before the first round
                continue
            if number >= ROUNDS and all(outcomes.values()):
                break
            assert number < 20 * ROUNDS, outcomes
    finally:
        stop.set()
        thread.join()


# Allowed roots ---------------------------------------------------------------------------------------------------


async def test_an_allowed_root_lets_an_absolute_path_in(asking, monkeypatch, tmp_path):
    report = asking.write(tmp_path / "allowed" / "sub" / "report.md")
    assert "outside of the project;" in await refused(asking, {**GOOD, "one": str(report)})
    monkeypatch.setenv("DEEPWORK_ALLOWED_OUTPUT_ROOTS", f"{tmp_path / 'other'}:{tmp_path / 'allowed'}")
    assert (await submit(asking, {**GOOD, "one": str(report)}))["status"] == "next_step"


@pytest.mark.parametrize("path", ["allowed-evil/x.md", "allowed/../x.md", "allowed/link.md"])
async def test_beside_an_allowed_root_everything_stays_refused(asking, monkeypatch, tmp_path, path):
    for name in ("allowed-evil/x.md", "x.md", "allowed/y.md"):
        asking.write(tmp_path / name)
    (tmp_path / "allowed" / "link.md").symlink_to(tmp_path / "x.md")
    monkeypatch.setenv("DEEPWORK_ALLOWED_OUTPUT_ROOTS", str(tmp_path / "allowed"))
    text = await refused(asking, {**GOOD, "one": f"{tmp_path}/{path}"})
    assert "lies outside of the project and the allowed roots" in text


async def test_relative_paths_start_at_the_project_also_with_allowed_roots(asking, monkeypatch, tmp_path):
    asking.write(tmp_path / "allowed" / "only_there.md")
    monkeypatch.setenv("DEEPWORK_ALLOWED_OUTPUT_ROOTS", str(tmp_path / "allowed"))
    assert "file not found" in await refused(asking, {**GOOD, "one": "only_there.md"})


# Limits ----------------------------------------------------------------------------------------------------------

TEXTS = {
    "goal": ("start_workflow", {"job_name": "demo", "workflow_name": "main"}),
    "notes": ("finished_step", {"outputs": GOOD}),
    "quality_review_override_reason": ("finished_step", {"outputs": GOOD}),
    "explanation": ("abort_workflow", {}),
}
NAMES = {
    "job_name": ("start_workflow", {"goal": "g", "workflow_name": "main"}),
    "workflow_name": ("start_workflow", {"goal": "g", "job_name": "demo"}),
    "instance_id": ("start_workflow", {"goal": "g", "job_name": "demo", "workflow_name": "main"}),
    "parent_session_id": ("start_workflow", {"goal": "g", "job_name": "demo", "workflow_name": "main"}),
    "session_id": ("finished_step", {"outputs": GOOD}),
    "step_id": ("finished_step", {"outputs": GOOD}),
}


@pytest.mark.parametrize("name", TEXTS)
async def test_a_text_of_64_kib_is_accepted_and_one_more_byte_refused(asking, name):
    tool, arguments = TEXTS[name]
    async with asking.agent() as agent:
        await agent.start()
        text = await agent.refused(tool, **arguments, **{name: "ü" * 32768 + "x"})
        assert text.startswith(f"{name} has 65,537 bytes; the limit is 64 KiB")
        await agent.call(tool, **arguments, **{name: "ü" * 32768})


@pytest.mark.parametrize("name", NAMES)
async def test_a_name_or_id_of_more_than_1_kib_is_refused(asking, name):
    tool, arguments = NAMES[name]
    async with asking.agent() as agent:
        await agent.start()
        text = await agent.refused(tool, **arguments, **{name: "x" * 1025})
    assert text.startswith(f"{name} has 1,025 bytes; the limit is 1 KiB")


@pytest.mark.parametrize(("tool", "arguments", "name"), [(*TEXTS[name], name) for name in TEXTS])
async def test_a_text_that_is_no_unicode_is_refused_by_its_name(asking, tool, arguments, name):
    """It cannot come over a wire of JSON, but in process it can."""
    async with asking.agent() as agent:
        await agent.start()
        assert (await agent.refused(tool, **arguments, **{name: "a\ud800b"})).startswith(
            f"{name} contains half of a surrogate"
        )


async def test_a_path_that_is_no_unicode_is_refused(asking):
    """A file name of other bytes exists, but no answer could carry it."""
    with suppress(OSError):  # not every file system has such names
        asking.write("\udc80.md")
    assert "is not UTF-8" in await refused(asking, {**GOOD, "one": "\udc80.md"})


async def test_1000_paths_for_one_output_are_accepted_and_one_more_refused(asking):
    assert (await submit(asking, {**GOOD, "many": ["one.md"] * 1000}))["status"] == "next_step"
    text = await refused(asking, {**GOOD, "many": ["one.md"] * 1001})
    assert text.startswith("Output 'many' has 1,001 paths; the limit is 1,000 (step 'a' of ")


async def test_a_path_of_4096_bytes_is_accepted_and_one_more_byte_refused(asking):
    longest = "./" * 2045 + "one.md"
    assert (await submit(asking, {**GOOD, "one": longest}))["status"] == "next_step"
    assert "longer than 4,096 bytes" in await refused(asking, {**GOOD, "one": "./" * 2045 + "/one.md"})


@pytest.mark.parametrize(
    ("path", "cure"),
    [
        ("sub\\one.md", "'sub/one.md' is there; call again with that."),
        ("~/one.md", "Give the path in full."),
        ("*.md", "Name each file."),
        ("https://example.org/one.md", "Save it to a file, and give its path."),
        ("gone.md", "Write the file first, then call finished_step again."),
        ("one.md/", "ends with '/', as only a folder does; give 'one.md'"),
        ("out.md", "is, or lies behind, a link that leads out of the project"),
    ],
)
async def test_a_path_that_cannot_work_is_told_what_it_is_and_its_own_cure(asking, tmp_path, path, cure):
    asking.write("sub/one.md")
    (tmp_path / "elsewhere.md").write_text("elsewhere")
    (asking.root / "out.md").symlink_to(tmp_path / "elsewhere.md")
    text = await refused(asking, {**GOOD, "one": path})
    assert cure in text
    assert ("Write the file first" in text) == (path == "gone.md")


async def test_an_empty_file_is_accepted_with_a_notice(asking):
    asking.write("empty.md", "")
    async with asking.agent() as agent:
        await agent.start()
        reply = await agent.finish({**GOOD, "one": "empty.md"})
    assert "Output 'one': 'empty.md' is an empty file." in reply["notices"]


OWNER = "step 'a' of demo/main, session 'f00'"


@pytest.mark.parametrize(
    "value",
    [
        {"one": ["a.md"]},
        {"one": 7},
        {"one": "nowhere.md"},
        {"one": "../outside.md"},
        {"one": "https://example.org/a.md"},
        {"one": "a.md", "many": "a.md"},
        {"one": "a.md", "many": [7]},
        {"one": "a.md", "many": ["gone.md"]},
        {"one": "a.md", "zebra": "a.md"},
        {},
    ],
)
def test_every_refusal_of_outputs_names_step_workflow_and_session(project, value):
    project.write("a.md")
    declared = {"one": StepOutput(**output()), "many": StepOutput(**output("files", required=False))}
    with pytest.raises(OutputError) as refused:
        check_outputs(value, declared, Workspace(project.root), owner=OWNER)
    assert refused.value.message.endswith(f" ({OWNER})")
