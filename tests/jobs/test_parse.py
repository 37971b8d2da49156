"""Every field and limit of a job file, and what the fields have to do with each other."""

from __future__ import annotations

import pytest

from deepwork.errors import JobLoadError
from deepwork.models.jobs import Job

COLLECT = "  - id: collect\n    name: Collect\n"
STEP_TEXT = "    instructions_file: steps/text.md\n"  # what is put before it belongs to the last step

# What is replaced, by what, the line on which the problem is then found (None: that of the new text), and what it says.
WRONG = [
    ("name: demo\n", "", "version:", "'name' is missing"),
    (
        "name: demo",
        "name: Demo",
        None,
        "name: should be lower-case letters, digits and '_', beginning with a letter (found 'Demo')",
    ),
    ("name: demo", "name: 1demo", None, "name: should be lower-case letters, digits and '_'"),
    ("name: demo", "name: de-mo", None, "name: should be lower-case letters, digits and '_'"),
    ("name: demo", "name: ''", None, "name: should be lower-case letters, digits and '_'"),
    ("name: demo", 'name: "demo\\n"', None, "name: should be lower-case letters, digits and '_'"),
    ("name: demo", "name: 5", None, "name: should be text (found 5); put it in quotes"),
    ("name: demo", "name:", None, "name: has no value; it should be text"),
    ('version: "1.2.3"\n', "", "name:", "'version' is missing"),
    ('version: "1.2.3"', "version: 1.0", None, "version: should be text (found 1.0); put it in quotes"),
    ('version: "1.2.3"', 'version: "1.0"', None, "version: should be three numbers such as 1.0.0 (found "),
    ('version: "1.2.3"', "version: v1.2.3", None, "version: should be three numbers such as 1.0.0 (found "),
    ('version: "1.2.3"', "version: 1.2.3.4", None, "version: should be three numbers such as 1.0.0 (found "),
    ('version: "1.2.3"', "version: 1.2.3-rc1", None, "version: should be three numbers such as 1.0.0 (found "),
    ("summary: A demo\n", "", "name:", "'summary' is missing"),
    ("summary: A demo", "summary: ''", None, "summary: should not be empty"),
    ("summary: A demo", f"summary: {'x' * 201}", None, "summary: has 201 characters; at most 200 are allowed"),
    ("summary: A demo", "summary: yes", None, "summary: should be text (found true); put it in quotes"),
    ("summary: A demo", "summary: [A, demo]", None, "summary: should be text"),
    ("at_runtime: |\n  About the demo", "at_runtime: ''", None, "runtime: should not be empty"),
    ("at_runtime: |\n  About the demo", "at_runtime: 5", None, "runtime: should be text (found 5); put it in quotes"),
    # Workflows.
    ("name: full\n    summary", "summary", "summary: Everything", "workflows[0]: 'name' is missing"),
    ("name: full", "name: Full", None, "workflows[0].name: should be lower-case letters, digits and '_'"),
    ("    summary: A part\n", "", "name: short", "workflows[1]: 'summary' is missing"),
    (
        "summary: A part",
        f"summary: {'x' * 201}",
        None,
        "workflows[1].summary: has 201 characters; at most 200 are allowed",
    ),
    ("agent: general", "agent: ''", None, "workflows[0].agent: should not be empty"),
    ("agent: general", "agent: 5", None, "workflows[0].agent: should be text (found 5); put it in quotes"),
    ("    steps:\n      - collect\nsteps", "steps", "name: short", "workflows[1]: 'steps' is missing"),
    ("    steps:\n      - collect\nsteps", "    steps: []\nsteps", None, "workflow 'short' has no steps"),
    (
        "    steps:\n      - collect\nsteps",
        "    steps: collect\nsteps",
        None,
        "[1].steps: should be a list",
    ),
    ("- [charts, text]", "- [charts, 5]", None, "workflows[0].steps[1][1]: should be text (found 5); put it in quotes"),
    ("- [charts, text]", "- [charts, [text]]", None, "workflows[0].steps[1][1]: should be text"),
    ("- [charts, text]", "- []", None, "workflow 'full' has an empty group"),
    ("- [charts, text]", "- {charts: text}", None, "workflows[0].steps[1]: should be text"),
    ("- [charts, text]", "- # none", None, "workflows[0].steps[1]: has no value; it should be text"),
    ("- [charts, text]", "- Charts", None, "workflows[0].steps[1]: should be lower-case letters, digits and '_'"),
    ("- [charts, text]", "- [Charts]", None, "workflows[0].steps[1][0]: should be lower-case letters, digits and '_'"),
    # Steps.
    (COLLECT, "  - name: Collect\n", None, "steps[0]: 'id' is missing"),
    ("id: collect", "id: Collect", None, "steps[0].id: should be lower-case letters, digits and '_'"),
    ("    name: Collect\n", "", "id: collect", "steps[0]: 'name' is missing"),
    ("name: Collect", "name: ''", None, "steps[0].name: should not be empty"),
    ("name: Collect", "name: 2024-01-01", None, "steps[0].name: should be text"),
    ("    description: Draw the charts\n", "", "id: charts", "steps[1]: 'description' is missing"),
    ("description: Draw the charts", "description: ''", None, "steps[1].description: should not be empty"),
    (STEP_TEXT, "", "id: text", "steps[2]: 'instructions_file' is missing"),
    ("steps/text.md", "''", None, "steps[2].instructions_file: should not be empty"),
    ("steps/text.md", "[steps/text.md]", None, "steps[2].instructions_file: should be text"),
    (
        "    dependencies:\n      - collect",
        "    dependencies: collect",
        None,
        "dependencies: should be a list",
    ),
    (
        "dependencies:\n      - collect",
        "dependencies:\n      - 5",
        "- 5",
        "dependencies[0]: should be text",
    ),
    ("exposed: true", "exposed: 1", None, "steps[1].exposed: should be true or false (found 1)"),
    ("exposed: true", "exposed: 'yes'", None, "steps[1].exposed: should be true or false (found 'yes')"),
    ("hidden: false", "hidden: maybe", None, "steps[1].hidden: should be true or false (found 'maybe')"),
    ("agent: writer", "agent: ''", None, "steps[1].agent: should not be empty"),
    # Outputs.
    ("    outputs: {}\n", "", "id: text", "steps[2]: 'outputs' is missing"),
    ("outputs: {}", "outputs: []", None, "steps[2].outputs: should be a mapping"),
    ("outputs: {}", "outputs: # none", None, "steps[2].outputs: has no value; it should be a mapping"),
    ("outputs: {}", "outputs: [a.md]", None, "steps[2].outputs: should be a mapping"),
    ("outputs: {}", "outputs: {a.md: file}", None, "steps[2].outputs.a.md: should be a mapping (found 'file')"),
    ("outputs: {}", "outputs: {yes: {}}", None, "steps[2].outputs: a key is not text (found true); put it in quotes"),
    ("        type: file\n", "", "figures.csv:", "steps[0].outputs.figures.csv: 'type' is missing"),
    ("type: files", "type: folder", None, "outputs.charts.type: should be 'file' or 'files' (found 'folder')"),
    ("        description: PNG files\n", "", "charts:\n        type", "outputs.charts: 'description' is missing"),
    ("description: PNG files", "description: ''", None, "outputs.charts.description: should not be empty"),
    ("        required: true\n", "", "figures.csv:", "steps[0].outputs.figures.csv: 'required' is missing"),
    (
        "required: true",
        "required: 'true'",
        None,
        "figures.csv.required: should be true or false (found 'true')",
    ),
    ("required: true", "required: 1", None, "figures.csv.required: should be true or false (found 1)"),
    # Inputs.
    (
        "- name: quarter\n        description: Which quarter",
        "- no",
        None,
        "steps[0].inputs[0]: should be a mapping",
    ),
    ("name: quarter", "name: ''", None, "steps[0].inputs[0].name: should not be empty"),
    ("description: Which quarter", "description: ''", None, "inputs[0].description: should not be empty"),
    ("        description: Which quarter\n", "", "name: quarter", "steps[0].inputs[0]: 'description' is missing"),
    ("        from_step: collect\n", "", "file: figures.csv", "steps[1].inputs[0]: 'from_step' is missing"),
    ("- file: figures.csv\n        from_step", "- from_step", None, "steps[1].inputs[0]: 'file' is missing"),
    ("file: figures.csv", "file: ''", None, "steps[1].inputs[0].file: should not be empty"),
    ("from_step: collect", "from_step: ''", None, "inputs[0].from_step: should not be empty"),
    ("file: figures.csv", "name: a\n        file: figures.csv", None, "steps[1].inputs[0]: unknown key 'name'"),
    # Reviews.
    ("    outputs: {}\n    reviews: []\n", "    outputs: {}\n", "id: text", "steps[2]: 'reviews' is missing"),
    ("{}\n    reviews: []", "{}\n    reviews: {}", "reviews: {}", "steps[2].reviews: should be a list"),
    ("- run_each: charts\n        quality", "- quality", None, "steps[1].reviews[0]: 'run_each' is missing"),
    ("run_each: charts", "run_each: ''", None, "reviews[0].run_each: should not be empty"),
    (
        "        quality_criteria:\n          Readable: Are the axes labelled?\n",
        "",
        "run_each",
        "steps[1].reviews[0]: 'quality_criteria' is missing",
    ),
    (
        "quality_criteria:\n          Readable: Are the axes labelled?",
        "quality_criteria: {}",
        None,
        "steps[1].reviews[0].quality_criteria: should not be empty",
    ),
    ("Are the axes labelled?", "''", None, "quality_criteria.Readable: should not be empty"),
    ("Are the axes labelled?", "[a, b]", None, "quality_criteria.Readable: should be text"),
    ("Readable: Are", "1: Are", None, "quality_criteria: a key is not text (found 1); put it in quotes"),
    ('guidance: ""', "guidance: 5", None, "additional_review_guidance: should be text (found 5); put it in quotes"),
    # Hooks.
    (
        "after_agent:\n        - script: check.sh",
        "after_agent: check.sh",
        None,
        "after_agent: should be a list",
    ),
    ("- script: check.sh", "- check.sh", None, "steps[1].hooks.after_agent[0]: should be a mapping"),
    ("script: check.sh", "script: ''", None, "hooks.after_agent[0].script: should not be empty"),
    ("- script: check.sh", "- {}", None, "after_agent[0]: a hook has exactly one of prompt, prompt_file, script"),
    ("- script: check.sh", "- script:", None, "after_agent[0]: a hook has exactly one of prompt, prompt_file, script"),
    ("prompt: Think first", "prompt: a\n          script: b", None, "before_tool[0]: a hook has exactly one of prompt"),
    ("prompt_file: think.md", "prompt_file: ''", None, "before_prompt[0].prompt_file: should not be empty"),
    ("stop_hooks:\n      - prompt: Is it done?", "stop_hooks: {}", None, "stop_hooks: should be a list"),
    ("prompt: Is it done?", "prompt: ''", None, "steps[1].stop_hooks[0].prompt: should not be empty"),
]


def line_of(text, part):
    return text.count("\n", 0, text.index(part)) + 1


@pytest.mark.parametrize(("old", "new", "at", "says"), WRONG, ids=range(len(WRONG)))
def test_a_wrong_value_is_an_error_with_file_and_line(old, new, at, says, full, load):
    assert full.count(old) >= 1
    text = full.replace(old, new, 1)
    error = load(text)
    assert isinstance(error, JobLoadError)
    place = f"{error.job_dir / 'job.yml'}:{line_of(text, new if at is None else at)}: "
    hits = [line for line in error.message.removeprefix("Failed to load: ").splitlines() if says in line]
    assert hits, error.message
    assert hits[0].startswith(place), error.message


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("summary: A demo", "sumary: A demo", "unknown key 'sumary'; did you mean 'summary'?"),
        ("agent: general", "agnet: general", "workflows[0]: unknown key 'agnet'; did you mean 'agent'?"),
        ("name: Collect", "nmae: Collect", "steps[0]: unknown key 'nmae'; did you mean 'name'?"),
        ("exposed: true", "expose: true", "steps[1]: unknown key 'expose'; did you mean 'exposed'?"),
        ("type: files", "typ: files", "steps[1].outputs.charts: unknown key 'typ'; did you mean 'type'?"),
        ("description: Which", "descripton: Which", "inputs[0]: unknown key 'descripton'; did you mean 'description'?"),
        ("from_step: collect", "fromstep: collect", "inputs[0]: unknown key 'fromstep'; did you mean 'from_step'?"),
        ("run_each: charts", "run_eech: charts", "reviews[0]: unknown key 'run_eech'; did you mean 'run_each'?"),
        ("before_tool:", "before_tools:", "steps[1].hooks: unknown key 'before_tools'; did you mean 'before_tool'?"),
        ("script: check.sh", "scripts: check.sh", "after_agent[0]: unknown key 'scripts'; did you mean 'script'?"),
        ("prompt: Is it done?", "promt: Is it done?", "stop_hooks[0]: unknown key 'promt'; did you mean 'prompt'?"),
    ],
)
def test_an_unknown_key_is_refused_at_every_level_with_the_nearest_valid_one(old, new, says, full, load):
    text = full.replace(old, new, 1)
    error = load(text)
    assert isinstance(error, JobLoadError)
    assert f"{error.job_dir / 'job.yml'}:{line_of(text, new)}: " in error.message
    assert says in error.message


def test_an_unknown_key_that_resembles_none_is_answered_with_the_valid_ones(full, load):
    error = load(full.replace("agent: general", "xyz: general"))
    assert error.message.endswith("job.yml:10: workflows[0]: unknown key 'xyz'; valid: agent, name, steps, summary")


@pytest.mark.parametrize("key", ["1", "null", "yes", "1.5"])
def test_a_key_that_is_no_text_is_refused_on_its_own_line(key, full, load):
    error = load(f"{full}{key}: x\n")
    assert f"job.yml:{line_of(full + key + ': x', key + ': x')}: a key is not text" in error.message


@pytest.mark.parametrize("root", ["- a\n", "just text\n", "5\n", "[]\n"])
def test_a_root_that_is_no_mapping_is_refused(root, load):
    assert "job.yml:1: should be a mapping" in load(root).message


@pytest.mark.parametrize("content", ["", "\n\n", "# nothing\n", "---\n", "null\n"])
def test_an_empty_file_lacks_every_required_key(content, load):
    message = load(content).message
    for key in ("name", "version", "summary", "common_job_info_provided_to_all_steps_at_runtime", "steps"):
        assert f"{key!r} is missing" in message


@pytest.mark.parametrize("steps", ["[]", "{}", "null", "text", "[null]", "[[]]", "[5]"])
def test_steps_must_be_a_list_of_at_least_one_mapping(steps, full, load):
    head = full[: full.index("\nworkflows:")]
    error = load(f"{head}\nsteps: {steps}\n")
    assert f"job.yml:{line_of(full, 'workflows:')}: steps" in error.message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("summary: A demo", f"summary: {'x' * 200}"),
        ("summary: A demo", "summary: x"),
        ("name: demo", "name: d"),
        ('version: "1.2.3"', "version: 10.20.30"),
        ("agent: general", "agent: x"),
        ("description: PNG files", "description: x"),
    ],
)
def test_a_value_at_its_limit_is_accepted(old, new, full, load):
    assert isinstance(load(full.replace(old, new, 1)), Job)


# What is replaced, by what, on which line the problem is (None: that of the new text), and what it says.
CONTRADICTIONS = [
    (
        "      - collect\n    inputs",
        "      - colect\n    inputs",
        None,
        "step 'charts' depends on non-existent step 'colect'",
    ),
    ("- collect\n    inputs", "- colect\n    inputs", None, "; did you mean 'collect'?"),
    (
        "- collect\n    inputs",
        "- charts\n    inputs",
        "dependencies:",
        "Circular dependency detected: charts -> charts",
    ),
    ("from_step: collect", "from_step: colect", None, "references non-existent step 'colect'; did you mean 'collect'?"),
    (
        "from_step: collect",
        "from_step: text",
        None,
        "input 'figures.csv' comes from 'text', which is not in dependencies",
    ),
    ("run_each: charts", "run_each: chart", None, "step 'charts': run_each='chart' is not an output of the step"),
    ("run_each: charts", "run_each: chart", None, "valid: step, charts"),
    ("name: short", "name: full", "name: full\n    summary: A part", "workflow name 'full' is used twice"),
    ("- [charts, text]", "- [charts, txt]", None, "workflow 'full' references non-existent step 'txt'"),
    ("- [charts, text]", "- [charts, txt]", None, "; did you mean 'text'?"),
    ("- [charts, text]", "- [charts, charts]", None, "workflow 'full' has step 'charts' twice"),
    ("- [charts, text]", "- [charts, collect]", None, "workflow 'full' has step 'collect' twice"),
    ("id: text", "id: charts", "id: charts\n    name: Write", "step id 'charts' is used twice"),
    ("id: text", "id: text\n    id: text", "id: text\n    name", "key 'id' is used twice, first in line"),
    (
        "        type: files",
        "        type: files\n        type: file",
        "type: file\n        description: PNG",
        "key 'type' is used twice",
    ),
    ("summary: A demo", "summary: A demo\nname: other", "name: other", "key 'name' is used twice, first in line 2"),
    ("      charts:\n", "      charts: {}\n      charts:\n", "charts:\n        type", "key 'charts' is used twice"),
]


@pytest.mark.parametrize(("old", "new", "at", "says"), CONTRADICTIONS, ids=range(len(CONTRADICTIONS)))
def test_a_contradiction_is_an_error_with_file_and_line(old, new, at, says, full, load):
    text = full.replace(old, new, 1)
    error = load(text)
    assert isinstance(error, JobLoadError)
    hits = [line for line in error.message.removeprefix("Failed to load: ").splitlines() if says in line]
    assert hits, error.message
    assert hits[0].startswith(f"{error.job_dir / 'job.yml'}:{line_of(text, new if at is None else at)}: "), hits[0]


def test_a_cycle_is_spelled_out_in_the_order_of_the_dependencies(load):
    error = load(chain({"a": "c", "b": "a", "c": "b"}))
    spelled = error.message.partition("Circular dependency detected: ")[2]
    assert spelled in ("a -> c -> b -> a", "c -> b -> a -> c", "b -> a -> c -> b")


def test_a_cycle_of_thousands_of_steps_is_refused_in_a_readable_message(load):
    error = load(chain({f"s{number}": f"s{(number + 1) % 5000}" for number in range(5000)}))
    assert "Circular dependency detected: s" in error.message
    assert len(error.message) < 2000


def test_a_chain_of_5000_steps_loads_and_can_be_listed(load):
    ids = [f"s{number}" for number in range(5000)]
    text = chain(dict(zip(ids, [None, *ids], strict=False)))
    job = load(f"{text}workflows: [{{name: all, summary: All, steps: [{', '.join(ids)}]}}]\n")
    assert isinstance(job, Job)
    assert job.definition.workflows[0].step_ids == ids
    assert job.warnings == ()


def test_at_most_twenty_problems_are_shown_and_the_others_counted(full, load):
    head = full[: full.index("\nsteps:")]
    message = load(f"{head}\nsteps: [{', '.join(['{}'] * 10)}]\n").message  # each lacks six keys
    assert len(message.splitlines()) == 21
    assert message.endswith("job.yml: and 40 more")


def test_at_most_twenty_contradictions_are_shown_and_the_others_counted(load):
    dependencies = ", ".join(f"w{number}" for number in range(50))
    message = load(chain({"a": None}).replace("dependencies: []", f"dependencies: [{dependencies}]")).message
    assert len(message.splitlines()) == 21
    assert message.endswith("job.yml: and 30 more")


@pytest.mark.parametrize("key", ["name", "type", "run_each", "from_step", "summary", "file"])
@pytest.mark.parametrize("long", ["x" * 100_000, "é\\n" * 50_000])
def test_a_long_key_or_value_is_cut_in_messages(key, long, full, load):
    for text in (full.replace(f"{key}: ", f'{key}: "{long}" #'), full.replace(f" {key}: ", f' ? "{long}"\n : ')):
        result = load(text)
        lines = (*result.errors, *result.warnings) if isinstance(result, Job) else result.message.splitlines()
        assert lines
        assert all(len(line) < 1500 for line in lines)


def test_a_message_is_one_line_without_control_characters(full, load):
    message = load(full.replace("run_each: charts", 'run_each: "a\\nb\\e[31m"')).message
    assert len(message.splitlines()) == 1
    assert "\x1b" not in message


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        (
            "file: figures.csv",
            "file: other.csv",
            "file: other.csv",
            "step 'charts': 'other.csv' is not an output of 'collect'",
        ),
        ("name: demo", "name: other", "name: other", "the job is named 'other', its folder 'demo'"),
        (
            "      - collect\n      - [charts, text]",
            "      - [charts, text]\n      - collect",
            "- [charts, text]",
            "workflow 'full': step 'charts' does not come after its dependency 'collect'",
        ),
        (
            "      - collect\n      - [charts, text]",
            "      - text\n      - charts\n      - collect",
            "- charts\n      - collect",
            "workflow 'full': step 'charts' does not come after its dependency 'collect'",
        ),
        (
            "      - collect\n      - [charts, text]",
            "      - [collect, charts]\n      - text",
            "- [collect, charts]",
            "workflow 'full': step 'charts' does not come after its dependency 'collect'",
        ),
        ("- [charts, text]", "- charts", "id: text", "step 'text' is in no workflow"),
    ],
)
def test_a_doubt_is_a_warning_with_file_and_line_and_the_job_still_loads(old, new, line, says, full, load):
    text = full.replace(old, new)
    job = load(text)
    assert isinstance(job, Job)
    [warning] = job.warnings
    assert warning == f"{job.job_dir / 'job.yml'}:{line_of(text, line)}: {says}"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("steps/gone.md", "does not exist"),
        ("steps", "does not exist"),
        ("../outside.md", "lies outside of the job's folder"),
    ],
)
def test_an_instructions_file_that_cannot_be_read_is_an_error_and_the_job_still_loads(
    path, reason, tmp_path, full, load
):
    (tmp_path / "outside.md").write_text("Not of this job")
    text = full.replace("steps/text.md", path)
    job = load(text)
    line = line_of(text, f"instructions_file: {path}\n")
    assert job.errors == (f"{job.job_dir / 'job.yml'}:{line}: step 'text': instructions file {path!r} {reason}",)
    assert job.warnings == ()


def test_a_dependency_that_is_in_no_workflow_together_with_its_step_is_no_doubt(full, load):
    """`short` has `collect` alone; a workflow without the early step cannot contradict it either."""
    job = load(full.replace("      - collect\n      - [charts, text]", "      - [charts, text]"))
    assert job.warnings == ()


def test_a_job_without_workflows_has_no_orphans(full, load):
    text = full[: full.index("workflows:")] + full[full.index("\nsteps:") + 1 :]
    assert load(text).warnings == ()


def test_many_doubts_are_cut_off(load):
    job = load(chain({f"s{number}": None for number in range(500)}).replace("steps/a.md", "gone.md"))
    assert len(job.warnings) <= 21


def chain(dependencies):
    """Write a job whose steps depend on one other step each, or on none."""
    head = "name: demo\nversion: 1.0.0\nsummary: s\ncommon_job_info_provided_to_all_steps_at_runtime: c\nsteps:\n"
    return head + "".join(
        f"  - {{id: {step_id}, name: n, description: d, instructions_file: steps/a.md, outputs: {{}}, reviews: [], "
        f"dependencies: [{before or ''}]}}\n"
        for step_id, before in dependencies.items()
    )
