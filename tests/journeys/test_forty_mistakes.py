"""Forty mistakes that agents make, sent to a real server: each reply alone leads to the right next call."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from deepwork.testing import Refused, output, review, step
from deepwork.testing.wire import StdioWire, start_server

Call = tuple[str, dict[str, Any]]

# Words of Python, and of our insides, that no agent should have to read.
JARGON = ("NoneType", "dictionary", "valid string", "pydantic", "Traceback", "site-packages", "StateError")


def start(job: str, workflow: Any, goal: Any = "A guide for users", **more: Any) -> Call:
    return "start_workflow", {"goal": goal, "job_name": job, "workflow_name": workflow, **more}


def finish(outputs: Any, **more: Any) -> Call:
    return "finished_step", {"outputs": outputs, **more}


def abort(explanation: str = "It cannot be done", **more: Any) -> Call:
    return "abort_workflow", {"explanation": explanation, **more}


OUTLINE = {"outline_file": "outline.md"}
CHAPTERS = {"chapters": ["a.md", "b.md"]}
GUIDE = {"guide_file": "guide.md"}
START = start("guide", "write_guide")
DONE = finish(OUTLINE)


@dataclass(frozen=True)
class Mistake:
    """A wrong call, what its reply has to say, and the right next call, which has to be accepted.

    `<id>`, `<parent>` and `<root>` stand for what the scene knows.
    """

    number: int
    mistake: str
    scene: str
    call: Call
    words: list[str] = field(default_factory=list)
    then: Call = DONE
    never: list[str] = field(default_factory=list)


def path_mistake(number: int, mistake: str, path: str, *words: str) -> Mistake:
    """Return a wrong path for the outline; that the file must be written is said only where that is the cure."""
    return Mistake(
        number, mistake, "guide", finish({"outline_file": path}), list(words), never=["Write the file first"]
    )


MISTAKES = [
    Mistake(1, "a misspelt job", "none", start("guid", "write_guide"), ["did you mean 'guide'?"], START),
    Mistake(1, "a job that is nothing like any", "none", start("zzz", "main"), ["valid: ", "guide", "outer"], START),
    Mistake(1, "a job whose file is broken", "none", start("broken", "main"), ["job.yml:2: ", "Correct "], START),
    Mistake(2, "a misspelt workflow", "none", start("guide", "writeguide"), ["did you mean 'write_guide'?"], START),
    Mistake(2, "an unknown workflow", "none", start("guide", "zzz"), ["available: write_guide, short_guide"], START),
    Mistake(2, "an unknown workflow of a job with one", "none", start("outer", "zzz"), ["'release', was started"],
            finish({"notes_file": "notes.md"})),
    Mistake(3, "workflow and job swapped", "none", start("write_guide", "guide"),
            ["job_name='guide', workflow_name='write_guide'"], START),
    Mistake(3, "a job as the stack shows it", "none", start("guide/write_guide", "write_guide"),
            ["job_name='guide', workflow_name='write_guide'"], START),
    Mistake(3, "a workflow as the stack shows it", "none", start("guide", "guide/write_guide"),
            ["did you mean 'write_guide'?"], START),
    Mistake(4, "a missing output", "guide", finish({"sources": ["a.md"]}),
            ["Missing required outputs: outline_file", "step 'outline' of guide/write_guide, session '<id>'"]),
    Mistake(5, "a misspelt output", "guide", finish({"outline": "outline.md"}),
            ["Unknown outputs: outline", "Declared outputs: outline_file, sources", "step 'outline'"]),
    Mistake(6, "a list for one file", "guide", finish({"outline_file": ["outline.md"]}),
            ["give one path as a string, not a list"]),
    Mistake(6, "a string for files", "draft", finish({"chapters": "a.md"}), ["give a list of paths, not a string"],
            finish(CHAPTERS)),
    path_mistake(7, "a path that climbs out", "../outline.md", "lies outside of the project", "<root>"),
    path_mistake(7, "a link that leads out", "link.md", "a link that leads out", "give a file in the project"),
    path_mistake(8, "an absolute path elsewhere", "/etc/passwd", "lies outside of the project", "<root>"),
    path_mistake(9, "a folder", "folder", "is a folder"),
    Mistake(10, "an empty list", "draft", finish({"chapters": []}), ["at least one path"], finish(CHAPTERS)),
    Mistake(11, "a file that is not there", "guide", finish({"outline_file": "gone.md"}),
            ["'gone.md'", "the project is <root>", "Write the file first"]),
    Mistake(12, "an empty file", "guide", finish({"outline_file": "empty.md"}), ["'empty.md' is an empty file"],
            finish(CHAPTERS)),
    Mistake(13, "the same report again", "draft", DONE,
            ["the outputs of step 'outline', which is already completed", "Now at step 'draft' (step 2 of 3)",
             "finished_step(session_id='<id>', step_id='draft', outputs={...})"], finish(CHAPTERS, step_id="draft")),
    Mistake(13, "the same report again, with ids", "draft", finish(OUTLINE, session_id="<id>", step_id="outline"),
            ["next_step", "draft"], finish(CHAPTERS)),
    Mistake(14, "a report before any start", "none", DONE, ["No active workflow session", "start_workflow begins one"],
            START),
    Mistake(15, "an unknown session", "guide", finish(OUTLINE, session_id="f" * 32),
            ["not found", 'finished_step(session_id="<id>", step_id="?", outputs={})'],
            finish({}, session_id="<id>", step_id="?")),
    Mistake(15, "a session whose last reply was lost", "over", finish({}, session_id="<id>"),
            ["is over: completed", "nothing left", 'finished_step(session_id="<id>", step_id="?", outputs={})'],
            finish({}, session_id="<id>", step_id="?")),
    Mistake(15, "a question about a completed session", "over", finish({}, session_id="<id>", step_id="?"),
            ["workflow_complete", "outline.md", "Tell the user"], START),
    Mistake(15, "an aborted session", "aborted", finish(OUTLINE, session_id="<id>"),
            ["is over: aborted (It cannot be done)", "start_workflow is for new work only"], START),
    Mistake(16, "an unknown step", "guide", finish(OUTLINE, step_id="zzz"),
            ["'zzz' is not a step of guide/write_guide, session '<id>'", "the current step is 'outline'",
             "finished_step(session_id='<id>', step_id='outline', outputs={...})"], finish(OUTLINE, step_id="outline")),
    Mistake(17, "a step that comes later", "guide", finish(CHAPTERS, step_id="draft"),
            ["'draft' comes later", "the current step is 'outline'", "outline_file"],
            finish(OUTLINE, step_id="outline")),
    Mistake(18, "a blank reason for an override", "polish", finish(GUIDE, quality_review_override_reason=" "),
            ["needs_work", "quality_review_override_reason is blank, so it does not count", "Spawn a subagent"],
            finish(GUIDE, quality_review_override_reason="Good: passed")),
    Mistake(18, "no reason after a review", "polish", finish(GUIDE),
            ["quality_review_override_reason: what the review"],
            finish(GUIDE, quality_review_override_reason="Good: passed")),
    Mistake(19, "an override where nothing is reviewed", "guide", finish(OUTLINE, quality_review_override_reason="ok"),
            ["next_step", "chapters"], finish(CHAPTERS)),
    Mistake(20, "an abort that may be sent twice", "nested", abort(),
            ["Back in outer/release: session_id='<parent>', step_id='prepare'",
             "Another abort_workflow without session_id would end outer/release, session '<parent>'"],
            finish({"notes_file": "notes.md"}, session_id="<parent>", step_id="prepare")),
    Mistake(21, "an abort without a reason", "guide", ("abort_workflow", {}), ["explanation: is required"], abort()),
    Mistake(21, "an abort with an empty reason", "guide", abort(" "), ["explanation is empty"], abort()),
    Mistake(22, "an output of the workflow below", "nested", finish({"notes_file": "notes.md"}),
            ["step 'outline' of guide/write_guide", "'notes_file' of step 'prepare' of outer/release",
             "finished_step(session_id='<parent>', step_id='prepare', outputs={...})"],
            finish({"notes_file": "notes.md"}, session_id="<parent>", step_id="prepare")),
    Mistake(22, "a step of the workflow below", "nested", finish({"notes_file": "notes.md"}, step_id="prepare"),
            ["Step 'prepare' is open in outer/release: report with "
             "finished_step(session_id='<parent>', step_id='prepare', outputs={...})"],
            finish({"notes_file": "notes.md"}, session_id="<parent>", step_id="prepare"), ["## Instructions"]),
    Mistake(23, "all outputs of a group in one call", "group",
            finish({"chart": "a.md", "prose": "b.md", "rows": "b.md"}),
            ["Unknown outputs: prose, rows", "finished_step(session_id='<id>', step_id='text', outputs={...})",
             "finished_step(session_id='<id>', step_id='table', outputs={...})",
             "3 steps are to be done at the same time: charts, text, table. Reporting 'charts' ends the group"],
            finish({"prose": "b.md"}, session_id="<id>", step_id="text")),
    Mistake(23, "a member without its id", "group", finish({"prose": "b.md"}),
            ["'prose' of step 'text'", "finished_step(session_id='<id>', step_id='text', outputs={...})"],
            finish({"prose": "b.md"}, session_id="<id>", step_id="text")),
    Mistake(24, "discovery with a forgotten session", "guide", ("get_workflows", {}),
            ["guide/write_guide", "A guide for users", 'finished_step(session_id="<id>", step_id="?", outputs={})'],
            finish({}, session_id="<id>", step_id="?")),
    Mistake(24, "an empty report to find out", "guide", finish({}),
            ["step 'outline' of guide/write_guide", 'finished_step(session_id="<id>", step_id="?", outputs={})'],
            finish({}, session_id="<id>", step_id="?")),
    Mistake(24, "the question", "guide", finish({}, step_id="?"),
            ["needs_work", "Goal: A guide for users", "outline_file"]),
    Mistake(25, "a restarted server, and no id", "restarted", DONE,
            ["Active sessions of this project", 'finished_step(session_id="<id>", step_id="?", outputs={})'],
            finish({}, session_id="<id>", step_id="?")),
    Mistake(26, "a misspelt argument", "guide", ("finished_step", {"output": OUTLINE}), ["did you mean 'outputs'?"]),
    Mistake(27, "a missing argument", "guide", ("finished_step", {}), ["outputs: is required"]),
    Mistake(28, "one argument too many", "guide", finish(OUTLINE, status="done"), ["status: is not a parameter"]),
    Mistake(29, "null for a name", "none", start("guide", None), ["workflow_name: give a string, not null"], START),
    Mistake(29, "a number for a goal", "none", start("guide", "write_guide", 7),
            ["goal: give a string, not a number"], START),
    Mistake(30, "a tool that does not exist", "none", ("resume_workflow", {}),
            ["get_workflows, start_workflow, finished_step, abort_workflow"], ("get_workflows", {}), ["did you mean"]),
    Mistake(30, "a tool with the client's prefix", "guide", ("mcp__deepwork__finished_step", {"outputs": OUTLINE}),
            ["did you mean 'finished_step'?"]),
    Mistake(31, "the same workflow started twice", "guide", START,
            ["guide/write_guide is active already: session '<id>'", "'A guide for users'",
             'finished_step(session_id="<id>", step_id="?", outputs={})', "abort_workflow(session_id="],
            finish({}, session_id="<id>", step_id="?")),
    Mistake(32, "a session of another connection", "restarted", finish(OUTLINE, session_id="<id>"),
            ["was begun on another connection. Its goal: A guide for users"], finish(CHAPTERS, session_id="<id>")),
    Mistake(32, "the end of another connection's session", "restarted", abort(session_id="<id>"),
            ["was begun on another connection. Its goal: A guide for users"], START),
    Mistake(33, "an empty goal", "none", start("guide", "write_guide", " "), ["goal is empty", "in a sentence"], START),
    Mistake(34, "a goal of 100 kB", "none", start("guide", "write_guide", "x" * 100_000),
            ["goal has 100,000 bytes; the limit is 64 KiB. Put details into a file."], START),
    path_mistake(35, "an accent of two characters", unicodedata.normalize("NFD", "é.md"), "'é.md' is there"),
    path_mistake(35, "an invisible character", "out\u200bline.md", "'outline.md' is there"),
    path_mistake(36, "a path of Windows", "C:\\work\\outline.md", "a path of Windows", "<root>"),
    path_mistake(36, "the separator of Windows", "folder\\notes.md", "separated by '/'", "'folder/notes.md' is there"),
    path_mistake(37, "a trailing slash", "outline.md/", "ends with '/'", "give 'outline.md'"),
    path_mistake(38, "a path of the home folder", "~/outline.md", "'~' is not replaced", "in full"),
    path_mistake(39, "a pattern", "*.md", "patterns are not expanded", "Name each file"),
    path_mistake(39, "a URL", "https://example.com/outline.md", "a URL, not a path", "Save it to a file"),
    Mistake(40, "an object for a path", "guide", finish({"outline_file": {"path": "outline.md"}}),
            ["outputs.outline_file: give a path or a list of paths, not an object"]),
    Mistake(40, "JSON in a string for the outputs", "guide", finish('{"outline_file": "outline.md"}'),
            ["outputs: give an object, not a string"]),
    path_mistake(40, "JSON in a string for a path", '{"path": "gone.md"}', "JSON in a string", "Give the value itself"),
    path_mistake(40, "the text itself for a path", "# Outline\n\nOne chapter.", "text, not a path", "to a file"),
]  # fmt: skip


class Stage:
    """Two servers of one project: the second one knows nothing of what the first has begun."""

    def __init__(self, root: Any, wire: StdioWire, second_wire: StdioWire) -> None:
        self.wire = wire
        self.other = second_wire
        self.names = {"root": str(root)}

    def set(self, scene: str) -> None:
        """End every session, and bring about what a scene begins with."""
        while sessions := self.wire.call("get_workflows").get("active_sessions"):
            for session in sessions:
                self.wire.call("abort_workflow", explanation="The scene is over", session_id=session["session_id"])
        SCENES[scene](self)

    def begin(self, job: str, workflow: str, name: str = "id") -> None:
        reply = self.do(self.wire, start(job, workflow))
        self.names[name] = reply["begin_step"]["session_id"]

    def do(self, wire: StdioWire, call: Call) -> Any:
        tool, arguments = call
        return wire.call(tool, **self.filled(arguments))

    def filled(self, value: Any) -> Any:
        """Replace the names in angle brackets, wherever they are."""
        if isinstance(value, dict):
            return {key: self.filled(item) for key, item in value.items()}
        if isinstance(value, str):
            for name, text in self.names.items():
                value = value.replace(f"<{name}>", text)
        return value


def drafting(stage: Stage) -> None:
    stage.begin("guide", "write_guide")
    stage.do(stage.wire, DONE)


def polishing(stage: Stage) -> None:
    drafting(stage)
    stage.do(stage.wire, finish(CHAPTERS))


def nested(stage: Stage) -> None:
    stage.begin("outer", "release", "parent")
    stage.begin("guide", "write_guide")


def over(stage: Stage) -> None:
    stage.begin("guide", "short_guide")
    stage.do(stage.wire, DONE)


def aborted(stage: Stage) -> None:
    stage.begin("guide", "write_guide")
    stage.do(stage.wire, abort())


SCENES: dict[str, Callable[[Stage], None]] = {
    "none": lambda _stage: None,
    "guide": lambda stage: stage.begin("guide", "write_guide"),
    "restarted": lambda stage: stage.begin("guide", "write_guide"),
    "group": lambda stage: stage.begin("quarterly", "report"),
    "draft": drafting,
    "polish": polishing,
    "nested": nested,
    "over": over,
    "aborted": aborted,
}


@pytest.fixture
def stage(project) -> Iterator[Stage]:
    outline = step("outline", outputs={"outline_file": output(), "sources": output("files", required=False)})
    draft = step("draft", outputs={"chapters": output("files")})
    polish = step("polish", outputs={"guide_file": output()}, reviews=[review()])
    flows = {"write_guide": ["outline", "draft", "polish"], "short_guide": ["outline"]}
    project.write_job("guide", [outline, draft, polish], flows)
    members = {"charts": "chart", "text": "prose", "table": "rows"}
    steps = [step(name, outputs={name_of_output: output()}) for name, name_of_output in members.items()]
    project.write_job("quarterly", steps, {"report": [[*members]]})
    project.write_job("outer", [step("prepare", outputs={"notes_file": output()}), step("publish")], {
        "release": ["prepare", "publish"]
    })  # fmt: skip
    project.write(".deepwork/jobs/broken/job.yml", "name: broken\nversion: 1.0\n")
    for path in ("outline.md", "a.md", "b.md", "guide.md", "notes.md", "folder/notes.md", "é.md"):
        project.write(path)
    project.write("empty.md", "")
    (project.root / "link.md").symlink_to("/etc/passwd")
    with start_server(project.root) as first, start_server(project.root) as second:
        wires = StdioWire(first), StdioWire(second)
        for wire in wires:
            wire.greet()
        yield Stage(project.root, *wires)
        for wire in wires:
            wire.close()


def strings(value: Any) -> Iterator[str]:
    """Yield every text in a reply."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def complaints(stage: Stage, row: Mistake) -> Iterator[str]:
    """Make a mistake, and give what is wrong with its reply, and with the call that should follow."""
    stage.set(row.scene)
    wire = stage.other if row.scene == "restarted" else stage.wire
    try:
        text = "\n".join(strings(stage.do(wire, row.call)))
    except Refused as error:
        text = str(error)
    yield from (f"lacks {word!r}" for word in map(stage.filled, row.words) if word not in text)
    yield from (f"has {word!r}" for word in (*row.never, *JARGON) if word in text)
    try:
        stage.do(wire, row.then)
    except Refused as error:
        yield f"the next call {row.then} was refused: {error}"


def test_each_of_forty_mistakes_leads_to_the_right_next_call(stage):
    assert {row.number for row in MISTAKES} == set(range(1, 41))
    mistakes = {f"{row.number}, {row.mistake}": faults for row in MISTAKES if (faults := [*complaints(stage, row)])}
    assert mistakes == {}
