"""Every endpoint, over what agents of other processes have done: with sessions in files, and in a database."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import anyio
import pytest

import deepwork_dashboard
from deepwork.api import history as history_models
from deepwork_dashboard.event_words import WORDS

DOCS = Path(__file__).parents[3] / "docs/reference"
REFERENCE = (DOCS / "dashboard.md").read_text()
# Objects whose keys are words, ids, or anything that agents wrote.
OPEN = {"plans", "tasks", "work", "agents", "plan_detail", "context", "data", "reference", "detail", "body"}
MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module", params=["json", pytest.param("sql", marks=pytest.mark.slow)])
def filled(request, module_project_at):
    """A project in which agents have worked, a dashboard of it, and the ids of what they made."""
    project = module_project_at(request.param)
    store = ("--state-store", request.param)
    ids = anyio.run(work, project, store)
    with project.dashboard(env={"DEEPWORK_STATE_STORE": request.param}) as dash:
        yield dash, ids


async def work(project, store):
    """Let agents do a bit of everything."""
    ids = {}
    async with project.agent("core", *store) as agent:
        first_step = await agent.start("report", instance_id="may")
        ids["session"] = first_step["session_id"]
        project.write("gather.md", f"# {MARKUP}\n")
        await agent.finish({"gather.md": "gather.md"}, session_id=first_step["session_id"], notes="as told")
        project.write("write.md", "bad\n")
        report = {"outputs": {"write.md": "write.md"}, "session_id": first_step["session_id"]}
        for _ in range(2):
            await agent.call("finished_step", **report)
        await agent.refused("finished_step", **report)
        plain_run = await agent.start("plain", "main")
        ids["done"] = plain_run["session_id"]
        for step in ("a", "b"):
            project.write(f"{step}.md", "fine\n")
            await agent.finish({f"{step}.md": f"{step}.md"}, session_id=plain_run["session_id"])
    async with project.agent("orchestration") as agent:
        ids |= await plan(agent)
    async with project.agent("tracking") as agent:
        ids |= await track(project, agent)
    return ids


async def plan(agent):
    created = await agent.call("workflow_create", name="Migrate", source_type="custom", source_content=MARKUP)
    tasks = [
        {"name": "schema", "description": "d", "sequence": 1},
        {"name": "import", "description": "d", "sequence": 2, "depends_on": ["schema"]},
        {"name": "check", "description": "d", "sequence": 3, "depends_on": ["import"]},
        {"name": "ask", "description": "d", "sequence": 1, "required_capabilities": ["human"]},
    ]
    await agent.call("workflow_set_plan", id=created["id"], plan={"summary": "s", "approach": "a", "tasks": tasks})
    listed = await agent.call("workflow_get", id=created["id"], include_tasks=True)
    ids = {task["name"]: task["id"] for task in listed["tasks"]}
    worker = await agent.call("agent_register", name="Worker", runtime="codex")
    lead = await agent.call("agent_register", name="Lead", runtime="claude_code", role="coordinator")
    await agent.call("task_claim", task_id=ids["schema"], agent_id=worker["id"])
    await agent.call("task_update_status", id=ids["schema"], status="planning")
    await agent.call("checkpoint_add", task_id=ids["schema"], type="progress", summary=MARKUP, files_changed=["a.py"])
    await agent.call(
        "message_send", sender_id=worker["id"], recipient_id=lead["id"], message_type="query", body={"deep": MARKUP}
    )
    to_person = {"recipient_id": "person", "message_type": "query", "body": "Which?"}
    await agent.call("message_send", sender_id=worker["id"], **to_person)
    return {"plan": created["id"], "tasks": ids, "worker": worker["id"], "lead": lead["id"]}


async def track(project, agent):
    tracked = await agent.call("start_workflow", name="Login", objective=MARKUP)
    phase = await agent.call("start_phase", workflow_id=tracked["workflow_id"], number=1, name="Design")
    about = {"workflow_id": tracked["workflow_id"], "phase_id": phase["phase_id"], "caller_type": "subagent"}
    task = await agent.call("start_task", **about, agent_name="ann", name="draw", goal=MARKUP)
    project.write("drawing <b>.txt")
    log = {"task_id": task["task_id"]}
    await agent.call("log_milestone", **log, message="half", progress=50)
    await agent.call("log_decision", **log, category="other", question="q", chosen="c", reasoning="r")
    issue = {"type": "other", "description": "stuck", "resolution": "r", "requires_human_review": True}
    await agent.call("log_issue", **log, **issue)
    await agent.call("complete_task", **log, status="success", outcome={"summary": "drawn"})
    return {"work": tracked["workflow_id"], "work_task": task["task_id"]}


def test_the_session_says_who_is_there_and_which_views_there_are(filled):
    dash, _ = filled
    session = dash.get("api/session")
    assert (session["principal"], session["person"], session["csrf"]) == ("local", False, None)
    assert session["views"] == ["inbox", "overview", "sessions", "plans", "work", "agents", "reviews", "events"]
    assert session["database"] == {"dialect": "sqlite", "problem": None}


def test_a_program_with_a_token_reads_what_waits_and_answers_none_of_it(filled):
    """Also the token of a person is a program's when a program sends it."""
    dash, _ = filled
    items = dash.get("api/inbox")["items"]
    assert {item["kind"] for item in items} == {"failed-gate", "human-task", "message", "blocker"}
    for item in items:
        for action in item["actions"]:
            body = {"id": item["id"], "action": action["name"], "text": "I allow it", "state": item["state"]}
            answer = dash.ask("api/inbox/answer", "POST", body=body, Origin=dash.origin)
            assert (item["kind"], action["name"], answer.status) == (item["kind"], action["name"], 403)
            error = answer.json()["error"]
            assert "nothing was changed" in error["message"]
            assert "`deepwork inbox`" in error["hint"]
    assert dash.get("api/inbox")["items"] == items


def test_sessions_are_listed_the_last_changed_first_and_found_by_status_job_and_words(filled):
    dash, ids = filled
    rows = dash.get("api/sessions")["items"]
    assert [row["id"] for row in rows] == [ids["done"], ids["session"]]
    assert (rows[1]["step"], rows[1]["position"], rows[1]["waits"]) == ("write", [2, 3], True)
    assert rows[0]["status"] == "completed"
    for query in ("status=active", "job=report", "q=REPORT", f"q={ids['session'][:12]}+goal"):
        assert [row["id"] for row in dash.get(f"api/sessions?{query}")["items"]] == [ids["session"]], query
    assert dash.get("api/sessions?q=report+plain") == {"items": [], "next": None, "total": 0}


def test_lists_are_given_in_pages(filled):
    dash, ids = filled
    first = dash.get("api/sessions?limit=1")
    second = dash.get(f"api/sessions?limit=1&cursor={first['next']}")
    assert [row["id"] for page in (first, second) for row in page["items"]] == [ids["done"], ids["session"]]
    assert (first["total"], second["next"]) == (2, None)


def test_a_session_shows_its_steps_with_attempts_verdicts_and_outputs(filled):
    dash, ids = filled
    session = dash.get(f"api/sessions/{ids['session']}")
    gather, write, check = session["steps"]
    assert (session["instance_id"], session["position"], session["waits"]) == ("may", [2, 3], True)
    assert [step["state"] for step in session["steps"]] == ["done", "current", "waiting"]
    assert gather["outputs"] == [{"name": "gather.md", "files": [{"path": "gather.md"}]}]
    assert gather["notes"] == "as told"
    assert gather["instructions"].startswith("Instructions for gather")
    assert (write["attempts"], write["max_attempts"]) == (3, 3)
    assert {review["attempt"] for review in write["reviews"]} == {1, 2, 3}
    [criterion] = write["reviews"][0]["criteria"]
    assert criterion == {"criterion": "Good", "passed": False, "feedback": "why?", "question": "Is it good?"}
    assert write["reviews"][-1]["feedback"] == "no <b>source</b> named"
    assert check["declared_outputs"][0]["name"] == "check.md"


def test_the_former_addresses_of_sessions_give_the_same(filled):
    """Programs that were written for the release before call them runs."""
    dash, ids = filled
    preview = f"{ids['session']}/preview?step=gather&path=gather.md"
    for path in (
        "",
        "?status=active",
        f"/{ids['session']}",
        f"/{ids['session']}/history?kind=verdict",
        f"/{preview}",
    ):
        assert dash.get(f"api/runs{path}") == dash.get(f"api/sessions{path}"), path
    events = dash.get(f"api/events?about=run:{ids['session']}&limit=500")["items"]
    assert {event["about"] for event in events} == {f"session:{ids['session']}"}


def test_the_history_of_a_session_is_told_backwards_and_narrowed(filled):
    dash, ids = filled
    history = dash.get(f"api/sessions/{ids['session']}/history")
    assert history["items"][-1]["kind"] == "started"
    assert [item["number"] for item in history["items"]] == [*range(history["total"], 0, -1)]
    verdicts = dash.get(f"api/sessions/{ids['session']}/history?kind=verdict&step=write")["items"]
    assert verdicts
    assert {item["kind"] for item in verdicts} == {"verdict"}


def test_the_inbox_says_what_waits_and_what_can_be_done(filled):
    dash, ids = filled
    items = dash.get("api/inbox")["items"]
    gate = next(item for item in items if item["kind"] == "failed-gate")
    assert gate["thing"] == f"session:{ids['session']}"
    assert "no <b>source</b> named" in gate["text"]
    assert (gate["files"], gate["criteria"]) == (["write.md"], ["Good: Is it good?"])
    assert all("files" not in item and "criteria" not in item for item in items if item is not gate)
    actions = [(action["name"], action["suggested"]) for action in gate["actions"]]
    assert actions == [("override", False), ("retry", True), ("abort", False)]
    assert gate["command"] == f"deepwork inbox answer {gate['id']} retry"
    assert {item["thing"] for item in items} >= {f"task:{ids['tasks']['ask']}", f"work:{ids['work']}"}
    assert [item["id"] for item in dash.get("api/inbox?kind=failed-gate")["items"]] == [gate["id"]]


def test_the_overview_counts_everything(filled):
    dash, ids = filled
    overview = dash.get("api/overview")
    assert overview["counts"]["sessions"] == {"active": 1, "completed": 1, "aborted": 0, "damaged": 0}
    assert overview["counts"]["plans"] == {"in_progress": 1}
    assert overview["counts"]["tasks"] == {"planning": 1, "blocked": 2, "pending": 1}
    assert overview["counts"]["agents"] == {"busy": 1, "online": 2}  # the user, who was sent a message, is one
    assert overview["counts"]["work"] == {"IN_PROGRESS": 1}
    assert overview["counts"]["inbox"] == len(dash.get("api/inbox")["items"])
    assert [row["id"] for row in overview["sessions"]] == [ids["session"]]
    assert [row["id"] for row in overview["plans"]] == [ids["plan"]]
    assert [row["id"] for row in overview["work"]] == [ids["work"]]
    assert {row["id"] for row in overview["agents"]} > {ids["worker"], ids["lead"]}
    assert (overview["spent"]["verdicts"], overview["spent"]["complete"], overview["problems"]) == (3, True, [])


def test_a_plan_shows_what_is_next_and_who_works_on_it(filled):
    dash, ids = filled
    [row] = dash.get("api/plans")["items"]
    assert (row["id"], row["done"], row["total"]) == (ids["plan"], 0, 4)
    plan = dash.get(f"api/plans/{ids['plan']}")
    assert plan["source_content"] == MARKUP
    assert [agent["id"] for agent in plan["agents"]] == [ids["worker"]]
    assert [task["name"] for task in plan["human_tasks"]] == ["ask"]
    assert plan["running"] == 1
    assert dash.get("api/plans?q=nothing")["items"] == []


def test_the_graph_of_a_plan_is_rows_and_pairs_of_positions(filled):
    dash, ids = filled
    graph = dash.get(f"api/plans/{ids['plan']}/graph")
    names = [row[1] for row in graph["rows"]]
    assert sorted(names) == ["ask", "check", "import", "schema"]
    edges = {(names[needed], names[task]) for needed, task in graph["edges"]}
    assert edges == {("schema", "import"), ("import", "check")}
    assert graph["agents"] == {ids["worker"]: "Worker"}
    assert dict(zip(graph["columns"], graph["rows"][names.index("check")], strict=True))["status"] == "blocked"


def test_the_tasks_of_a_plan_are_found_by_status_agent_and_words(filled):
    dash, ids = filled
    for query, names in (
        ("status=blocked", ["import", "check"]),
        (f"agent={ids['worker']}", ["schema"]),
        ("q=impo", ["import"]),
        ("", ["ask", "schema", "import", "check"]),
    ):
        items = dash.get(f"api/plans/{ids['plan']}/tasks?{query}")["items"]
        assert [item["name"] for item in items] == names, query


def test_a_task_shows_its_claim_its_checkpoints_and_why_it_is_blocked(filled):
    dash, ids = filled
    schema = dash.get(f"api/tasks/{ids['tasks']['schema']}")
    assert schema["claim"]["agent"] == {"id": ids["worker"], "thing": f"agent:{ids['worker']}", "name": "Worker"}
    assert schema["claim"]["lease_until"] > schema["claim"]["claimed_at"]
    assert [(item["summary"], item["files_changed"]) for item in schema["checkpoints"]] == [(MARKUP, ["a.py"])]
    check = dash.get(f"api/tasks/{ids['tasks']['check']}")
    [waits] = check["waits_for"]
    assert (waits["name"], waits["waits_for"][0]["name"]) == ("import", "schema")
    assert waits["waits_for"][0]["agent"] == ids["worker"]
    assert [task["name"] for task in schema["needed_by"]] == ["import"]


def test_agents_show_what_they_hold_and_until_when(filled):
    dash, ids = filled
    agents = {agent["id"]: agent for agent in dash.get("api/agents")["items"]}
    worker = agents[ids["worker"]]
    assert [task["name"] for task in worker["tasks"]] == ["schema"]
    assert worker["lease_until"]
    assert agents[ids["lead"]]["unread"] == 1
    assert dash.get(f"api/agents/{ids['worker']}") == worker
    assert [agent["id"] for agent in dash.get("api/agents?role=coordinator")["items"]] == [ids["lead"]]


def test_messages_show_who_wrote_to_whom(filled):
    dash, ids = filled
    [message] = dash.get(f"api/messages?agent={ids['lead']}&q=onerror")["items"]
    assert (message["from"]["name"], message["to"]["name"], message["body"]) == ("Worker", "Lead", {"deep": MARKUP})


def test_tracked_work_shows_phases_tasks_with_files_and_what_was_logged(filled):
    dash, ids = filled
    [row] = dash.get("api/work")["items"]
    assert (row["id"], row["blockers"], row["tasks"]["total"]) == (ids["work"], 1, 1)
    work = dash.get(f"api/work/{ids['work']}")
    assert [(phase["number"], phase["name"]) for phase in work["phase_list"]] == [(1, "Design")]
    assert work["counts"] == {"decisions": 1, "issues": 1, "milestones": 1}
    [task] = dash.get(f"api/work/{ids['work']}/tasks?phase=1&agent=ann&q=draw")["items"]
    assert ["A", "drawing <b>.txt"] in task["files"]
    assert dash.get(f"api/work/{ids['work']}/tasks/{ids['work_task']}") == task
    [issue] = dash.get(f"api/work/{ids['work']}/issues")["items"]
    assert (issue["description"], issue["blocks"]) == ("stuck", True)
    [decision] = dash.get(f"api/work/{ids['work']}/decisions?q=r")["items"]
    assert (decision["chosen"], decision["agent"]) == ("c", "ann")
    [milestone] = dash.get(f"api/work/{ids['work']}/milestones")["items"]
    assert (milestone["message"], milestone["progress"]) == ("half", 50)


def test_the_event_log_has_what_happened_anywhere_once_and_newest_first(filled):
    dash, ids = filled
    items, cursor = [], ""
    while cursor is not None:
        page = dash.get(f"api/events?limit=7&cursor={cursor}")
        items += page["items"]
        cursor = page["next"]
    assert len({item["id"] for item in items}) == len(items)
    assert {item["source"] for item in items} == {"core", "orchestration", "tracking"}
    times = [item["at"] for item in items]
    assert times == sorted(times, reverse=True)
    history = dash.get(f"api/sessions/{ids['session']}/history?limit=500")["items"]
    of_session = dash.get(f"api/events?about=session:{ids['session']}&limit=500")["items"]
    assert [item["event"] for item in of_session] == [f"session:{entry['kind']}" for entry in history]
    claimed = dash.get("api/events?source=orchestration&event=task:claimed")["items"]
    assert [item["thing"] for item in claimed] == [f"task:{ids['tasks']['schema']}"]
    assert dash.get("api/events?q=no+such+words")["items"] == []


def test_an_event_says_in_words_what_has_happened_and_by_whom(filled):
    dash, ids = filled

    def newest(query):
        event = dash.get(f"api/events?limit=1&{query}")["items"][0]
        return event["what"], event["title"], event["by"]

    worker = {"name": "Worker", "thing": f"agent:{ids['worker']}"}
    assert newest(f"event=session:verdict&about=session:{ids['session']}") == (
        "Review failed",
        "write",
        {"name": "local", "thing": None},
    )
    assert newest("event=session:attempt")[0] == "Attempt 3 reported"
    assert newest("event=task:updated&source=orchestration") == ("Task being planned", "schema", worker)
    assert newest("event=task:claimed") == ("Task claimed", "schema", worker)
    assert newest("event=task:updated&source=tracking") == ("Task succeeded", "draw", {"name": "ann", "thing": None})
    assert newest("q=review+failed")[0] == "Review failed"
    assert newest("q=claimed+worker")[0] == "Task claimed"
    entry = dash.get(f"api/sessions/{ids['session']}/history?kind=step_completed")["items"][0]
    assert (entry["what"], entry["by"]) == ("Step completed", None)


def test_every_event_that_the_reference_lists_has_its_words():
    """And every kind of entry in a history."""
    listed = {("core", f"session:{kind}") for kind in history_models.EventKind}
    for source in ("orchestration", "tracking"):
        rows = re.findall(r"^\| (`\w+:\w+`(?:, `\w+:\w+`)*) \|", (DOCS / f"{source}.md").read_text(), re.MULTILINE)
        listed |= {(source, event) for row in rows for event in re.findall(r"\w+:\w+", row)}
    assert {(source, event) for source, events in WORDS.items() for event in events} == listed


@pytest.mark.anyio
async def test_a_task_that_has_ended_says_who_held_it(project):
    """Also if it was claimed by others before; a task without a claim has no name."""
    async with project.agent("orchestration") as agent:
        plan = (await agent.call("workflow_create", name="q3", source_type="custom", source_content="x"))["id"]
        tasks = [{"name": name, "description": name, "sequence": 1} for name in ("vat", "fees", "sums")]
        await agent.call("workflow_set_plan", id=plan, plan={"summary": "s", "approach": "a", "tasks": tasks})
        listed = await agent.call("workflow_get", id=plan, include_tasks=True)
        ids = {task["name"]: task["id"] for task in listed["tasks"]}
        ann, bob = [(await agent.call("agent_register", name=name, runtime="codex"))["id"] for name in ("Ann", "Bob")]
        await agent.call("task_claim", task_id=ids["vat"], agent_id=ann)
        await agent.call("task_release", task_id=ids["vat"], agent_id=ann)
        await agent.call("task_claim", task_id=ids["vat"], agent_id=bob)
        await agent.call("task_claim", task_id=ids["sums"], agent_id=ann)
        for status in ("planning", "in_progress", "failed"):
            for name, who in (("vat", {"agent_id": bob}), ("fees", {})):
                await agent.call("task_update_status", id=ids[name], status=status, error="broke", **who)
    with project.dashboard() as dash:
        ended = {name: dash.get(f"api/tasks/{task_id}")["ended_by"] for name, task_id in ids.items()}
        assert ended == {"vat": {"id": bob, "thing": f"agent:{bob}", "name": "Bob"}, "fees": None, "sums": None}
        failed = dash.get("api/events?event=task:updated&q=vat&limit=1")["items"][0]
        assert (failed["what"], failed["by"]) == ("Task failed", {"name": "Bob", "thing": f"agent:{bob}"})


def test_one_search_finds_sessions_plans_tasks_agents_and_work(filled):
    dash, ids = filled
    for words, thing in (
        ("goal+report", f"session:{ids['session']}"),
        ("migr", f"plan:{ids['plan']}"),
        ("SCHEMA", f"task:{ids['tasks']['schema']}"),
        ("worker", f"agent:{ids['worker']}"),
        ("login", f"work:{ids['work']}"),
    ):
        assert thing in [item["thing"] for item in dash.get(f"api/search?q={words}")["items"]], words
    assert dash.get("api/search")["items"] == []


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("api/sessions/0000", 404, "no session '0000'"),
        ("api/plans/wf_x", 404, "no workflow 'wf_x'"),
        ("api/plans/wf_x/graph", 404, "no workflow"),
        ("api/tasks/x", 404, "no task 'x'"),
        ("api/agents/x", 404, "no agent 'x'"),
        ("api/work/x", 404, "no workflow 'x'"),
        ("api/work/x/tasks/y", 404, "no task 'y'"),
        ("api/sessions?limit=0", 400, "limit is '0'"),
        ("api/sessions?limit=501", 400, "a number from 1 to 500"),
        ("api/sessions?cursor=x", 400, "give the `next`"),
        ("api/sessions?status=open", 400, "active, completed, aborted, archived"),
        ("api/events?cursor=x", 400, "give the `next`"),
        ("api/events?cursor=x~y~1", 400, "not the id of an event"),
        ("api/work/x/tasks?phase=one", 400, "phase is 'one'"),
    ],
)
def test_what_cannot_be_answered_says_why(filled, path, status, text):
    dash, _ = filled
    answer = dash.ask(path)
    assert (answer.status, text in answer.json()["error"]["message"]) == (status, True), answer.text


def test_answers_are_never_kept_and_never_taken_for_pages(filled):
    dash, ids = filled
    answer = dash.ask(f"api/sessions/{ids['session']}")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert json.loads(answer.text)["id"] == ids["session"]


def examples():
    """Yield the example of each endpoint that the reference has one of."""
    for section in re.split(r"^## ", REFERENCE, flags=re.MULTILINE):
        path, block = re.match(r"`GET (api/[\w/]+)`", section), re.search(r"```json\n(.*?)```", section, re.DOTALL)
        if path and block:
            yield path[1], json.loads(block[1])


@pytest.mark.parametrize(("path", "example"), [*examples()], ids=[path for path, _ in examples()])
def test_an_answer_has_what_its_example_in_the_reference_has_and_nothing_else(filled, path, example):
    dash, ids = filled
    id_of = {"sessions": ids["session"], "plans": ids["plan"], "tasks": ids["tasks"]["schema"], "work": ids["work"]}
    query = "?step=gather&path=gather.md" if path.endswith("/preview") else ""
    place = path.replace("/ID", f"/{id_of.get(path.split('/')[1])}").replace("/STEP", "/write")
    answer = dash.get(place + query)
    if path == "api/work/ID":  # its rows are those of the list
        answer = {"phase_list": answer["phase_list"]}
    if "items" in answer and "items" not in example:
        answer = answer["items"][0]
    assert list(differences(answer, example)) == []


def differences(answer, example, place=""):
    """Compare the keys of objects, and of the first objects in lists; those of counts are words that may be missing."""
    if isinstance(answer, list) and isinstance(example, list) and answer and example:
        yield from differences(answer[0], example[0], f"{place}[]")
    if not (isinstance(answer, dict) and isinstance(example, dict)) or place.rpartition(".")[2] in OPEN:
        return
    if answer.keys() != example.keys():
        yield place, sorted(answer.keys() ^ example.keys())
    for key in answer.keys() & example.keys():
        yield from differences(answer[key], example[key], f"{place}.{key}")


def test_no_module_of_the_pages_makes_html_of_a_text():
    """Templates of lit escape what they are given; each of these would not."""
    static = Path(deepwork_dashboard.__file__).parent / "static"
    sinks = "innerHTML|outerHTML|insertAdjacentHTML|unsafeHTML|unsafeSVG|srcdoc|document.write|createContextualFragment"
    texts = {path: path.read_text() for path in [*static.glob("js/**/*.js"), static / "index.html"]}
    assert len(texts) > 20
    assert {path.name: re.findall(sinks, text) for path, text in texts.items() if re.search(sinks, text)} == {}


def test_all_scripts_of_the_pages_are_small_once_they_are_packed():
    """As the server packs them: a page loads all of them at its first opening."""
    scripts = (Path(deepwork_dashboard.__file__).parent / "static").rglob("*.js")
    assert sum(len(gzip.compress(script.read_bytes(), 5)) for script in scripts) <= 90 * 1024
