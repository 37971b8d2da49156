"""The work that a person reviews, over HTTP: attempts as they were reported, comments, drafts, and who may see them."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import reviewed as stories

ALICE, BOB, CI = "alices-token-for-tests", "bobs-token-for-tests", "a-token-of-a-program"
MUST = {"file": "plan.md", "line": 9, "text": "Say more.", "must": True}


@pytest.fixture
def reviewed(project):
    """A project whose step `plan` a person reviews."""
    return stories.Reviewed(project.root, env=project.env)


def item_of(dash, **headers):
    [item] = dash.get("api/inbox", **headers)["items"]
    return item


def decide(dash, action, headers, *, text=None, comments=None, item=None):
    """Answer as the page does."""
    item = item or item_of(dash)
    body = {"id": item["id"], "action": action, "text": text, "state": item["state"]}
    return dash.ask("api/inbox/answer", "POST", body={**body, "comments": comments or []}, **headers)


def test_attempts_are_shown_as_they_were_reported_with_what_differs_between_them(project, reviewed):
    with reviewed.agent() as agent, project.dashboard() as dash:
        _, person = dash.log_in()
        session = reviewed.begin(agent)
        reviewed.report(agent, session, stories.files())
        step = f"api/sessions/{session}/steps/plan"
        waiting = dash.get(step)
        assert (waiting["name"], waiting["state"]) == ("Plan the new checkout", "current")
        assert [action["name"] for action in waiting["item"]["actions"]] == ["pass", "changes", "retry", "abort"]
        assert decide(dash, "changes", person, comments=stories.COMMENTS).status == 200
        reviewed.report(agent, session, stories.files(**stories.SECOND))
        (project.root / "plan.md").unlink()

        piece = dash.get(step)
        assert [attempt["result"] for attempt in piece["attempts"]] == ["needs_work", "waiting"]
        assert [finding["line"] for finding in piece["attempts"][0]["reviewers"][0]["findings"]] == [10]
        assert [(comment["id"], comment["state"]) for comment in piece["comments"]] == [
            ("c1", "changed"),
            ("c2", "changed"),
            ("c3", "open"),
        ]

        newest = dash.get(f"{step}/files")
        assert (newest["attempt"], newest["against"]) == (2, "1")
        files = {file["path"]: file for file in newest["files"]}
        assert [*files] == [*stories.files()]
        assert files["prices.csv"]["changes"] == [[5, [], 5, 1]]
        assert files["prices.csv"]["lines"][4] == "IT,11.90,2026-12-01"
        [change] = files["plan.md"]["changes"]
        assert (change[0], len(change[1]), change[2:]) == (9, 2, [9, 2])
        assert (files["limits.json"]["state"], files["limits.json"]["changes"]) == ("same", [])
        assert [files["checkout.png"][name][:22] for name in ("image", "old_image")] == ["data:image/png;base64,"] * 2

        first = dash.get(f"{step}/files?attempt=1&against=none")
        [plan] = [file for file in first["files"] if file["path"] == "plan.md"]
        assert (plan["lines"], plan["changes"]) == (stories.PLAN.split("\n")[:-1], None)
        preview = dash.get(f"api/sessions/{session}/preview?step=plan&path=plan.md&attempt=1")
        assert preview["lines"] == plan["lines"]
        beside = dash.get(f"api/sessions/{session}/preview?step=plan&path=notes.md&attempt=2&against=none")
        assert beside["lines"] == ["Of 100 customers 31 leave at the second page."]


def test_what_is_no_attempt_and_no_file_of_it_is_not_there(project, reviewed):
    with reviewed.agent() as agent, project.dashboard() as dash:
        session = reviewed.begin(agent)
        reviewed.report(agent, session, stories.files())
        project.write("secret.txt", "secret")
        step = f"api/sessions/{session}/steps/plan"
        preview = f"api/sessions/{session}/preview?step=plan&attempt=1&path="
        statuses = {
            f"{step}/files?attempt=2": 404,
            f"{step}/files?attempt=x": 404,
            f"{step}/files?against=2": 400,
            f"{step}/files?against=begun": 400,
            f"api/sessions/{session}/steps/ship": 404,
            f"api/sessions/{session}/steps/ship/files": 404,
            **{preview + quote(path): 404 for path in ("secret.txt", "../tokens", "/etc/passwd", "tools/lint.py", "")},
        }
        assert {path: dash.ask(path).status for path in statuses} == statuses


def test_a_file_that_looks_like_secrets_is_closed_until_it_is_asked_for(project, reviewed):
    with reviewed.agent() as agent, project.dashboard() as dash:
        session = reviewed.begin(agent)
        reviewed.report(agent, session, stories.files())
        listed = dash.ask(f"api/sessions/{session}/steps/plan/files")
        assert "an-invented-key" not in listed.text
        [closed] = [file for file in listed.json()["files"] if file["closed"]]
        assert (closed["path"], closed["lines"], closed["blocks"]) == ("deploy.env", None, None)
        opened = dash.get(f"api/sessions/{session}/preview?step=plan&path=deploy.env&attempt=1&open=true")
        assert opened["lines"] == ['API_KEY="an-invented-key-0123456789"']


def test_what_held_secrets_before_is_closed_too_where_the_difference_would_show_them(project, reviewed):
    with reviewed.agent() as agent, project.dashboard() as dash:
        session = reviewed.begin(agent)
        reviewed.report(agent, session, stories.files(**{"src/cart.py": 'API_KEY = "an-older-key-0123456789"\n'}))
        reviewed.report(agent, session, stories.files())
        listed = dash.ask(f"api/sessions/{session}/steps/plan/files")
        assert "an-older-key" not in listed.text
        assert {file["path"] for file in listed.json()["files"] if file["closed"]} == {"deploy.env", "src/cart.py"}
        alone = dash.get(f"api/sessions/{session}/steps/plan/files?against=none")
        assert [file["path"] for file in alone["files"] if file["closed"]] == ["deploy.env"]


def test_contents_that_no_page_should_show_are_a_note(project, reviewed):
    with reviewed.agent() as agent, project.dashboard() as dash:
        session = reviewed.begin(agent)
        reviewed.report(
            agent,
            session,
            {
                "plan.md": stories.PLAN,
                "large.txt": "x" * (50 * 1024**2),
                "lines.txt": "y\n" * 30_000,
                "program.bin": b"\x7fELF\0\0",
                "latin.txt": b"\xfc\n",
                "drawing.svg": "<svg onload='window.hit = 1'/>\n",
                "false.png": "<svg xmlns='http://www.w3.org/2000/svg' onload='window.hit = 1'/>",
                "broken.json": "{" * 5000,
            },
        )
        answer = dash.ask(f"api/sessions/{session}/steps/plan/files")
        assert len(answer.body) < 1_000_000
        files = {file["path"]: file for file in answer.json()["files"]}
        assert (files["large.txt"]["note"], files["large.txt"]["lines"]) == ("large", None)
        assert (len(files["lines.txt"]["lines"]), files["lines.txt"]["truncated"]) == (20_000, True)
        assert [files[path]["kind"] for path in ("program.bin", "latin.txt")] == ["binary", "binary"]
        assert files["drawing.svg"]["lines"] == ["<svg onload='window.hit = 1'/>"]
        assert (files["false.png"]["image"], files["false.png"]["lines"]) == (None, None)
        assert (files["broken.json"]["blocks"], len(files["broken.json"]["lines"])) == (None, 1)


def test_markdown_and_tables_are_read_by_the_server_and_nothing_in_them_is_html(project, reviewed):
    hostile = (
        "# A <b>plan</b>\n\n<script>x</script>\n\n[a](javascript:x) [b](https://example.org)\n\n![c](http://x/y.png)\n"
    )
    with reviewed.agent() as agent, project.dashboard() as dash:
        session = reviewed.begin(agent)
        reviewed.report(
            agent, session, {"plan.md": hostile, "t.csv": 'a,"b\nc"\n1,2\n', "o.json": '[{"a": 1}, {"b": []}]'}
        )
        files = dash.get(f"api/sessions/{session}/steps/plan/files")["files"]
        markdown, table, objects = (file["blocks"] for file in files)
        assert [(block["tag"], block["lines"]) for block in markdown] == [
            ("h1", [1, 1]),
            ("p", [3, 3]),
            ("p", [5, 5]),
            ("p", [7, 7]),
        ]
        assert markdown[0]["parts"] == ["A <b>plan</b>"]
        assert markdown[1]["parts"] == ["<script>x</script>"]
        assert markdown[2]["parts"] == [
            "[a](javascript:x) ",
            {"tag": "link", "to": "https://example.org", "parts": ["b"]},
        ]
        assert [(row["head"], row["cells"], row["lines"]) for row in table] == [
            (True, [["a"], ["b\nc"]], [1, 2]),
            (False, [["1"], ["2"]], [3, 3]),
        ]
        assert [row["cells"] for row in objects] == [[["a"], ["b"]], [["1"], [""]], [[""], ["[]"]]]


def test_nobody_else_sees_a_piece_of_work_or_writes_to_it(project, reviewed, tokens):
    people = tokens(f"local {ALICE} person\nbob {BOB} person\nlocal {CI}\n")
    with reviewed.agent() as agent, project.dashboard("--token-file", people) as dash:
        session = reviewed.begin(agent)
        reviewed.report(agent, session, stories.files())
        step = f"api/sessions/{session}/steps/plan"
        (_, alice), (_, bob), (_, program) = (dash.log_in(token) for token in (ALICE, BOB, CI))
        item = item_of(dash, token=ALICE)
        assert decide(dash, "changes", alice, item=item, comments=[MUST]).status == 200
        assert dash.ask(f"{step}/draft", "POST", body={"draft": {"text": "mine"}}, **alice).status == 200

        reads = (step, f"{step}/files", f"api/sessions/{session}/preview?step=plan&path=plan.md&attempt=1")
        assert [dash.ask(path, token=BOB).status for path in reads] == [404] * 3
        assert [dash.ask(path, token=ALICE).status for path in reads] == [200] * 3
        for path, body in ((f"{step}/draft", {"draft": {"text": "x"}}), (f"{step}/resolve", {"comment": "c1"})):
            assert dash.ask(path, "POST", body=body, **bob).status == 404
            assert dash.ask(path, "POST", body=body, **program).status == 403
            assert dash.ask(path, "POST", body=body, token=ALICE).status == 403
        assert dash.ask(step, **program).json()["draft"] is None
        assert dash.ask(step, **alice).json()["draft"] == {"text": "mine"}
        [comment] = dash.get(step, token=ALICE)["comments"]
        assert comment["state"] == "open"
        assert dash.ask(f"{step}/resolve", "POST", body={"comment": "c1"}, **alice).status == 200
        [comment] = dash.get(step, token=ALICE)["comments"]
        assert comment["state"] == "resolved"


def test_a_draft_outlives_the_server_and_malformed_ones_are_refused(project, reviewed):
    draft = {"attempt": 1, "text": "so far", "comments": [{**MUST, "key": 1}], "composer": None}
    with reviewed.agent() as agent:
        session = reviewed.begin(agent)
        reviewed.report(agent, session, stories.files())
    path = f"api/sessions/{session}/steps/plan"
    with project.dashboard() as dash:
        _, person = dash.log_in()
        assert dash.ask(f"{path}/draft", "POST", body={"draft": draft}, **person).status == 200
        assert dash.ask(f"{path}/draft", "POST", body={"draft": "text"}, **person).status == 400
        assert dash.ask(f"{path}/resolve", "POST", body={"comment": 1}, **person).status == 400
        assert dash.ask(f"{path}/resolve", "POST", body={"comment": "c9"}, **person).status == 409
    with project.dashboard() as dash:
        page, person = dash.log_in()
        assert dash.ask(path, **page).json()["draft"] == draft
        assert dash.ask(f"{path}/draft", "POST", body={"draft": None}, **person).status == 200
        assert dash.ask(path, **page).json()["draft"] is None


def test_an_attempt_that_was_given_back_has_one_number_on_every_page(project):
    """It does not count against the limit, and neither does one that waits for a person."""
    run = ["sh", "-c", "grep -q ready plan.md || exit 126"]
    linter = {"run": run, "verdict": "exit_code", "repeatable": False}
    reviewed = stories.Reviewed(project.root, env=project.env, gate={"commands": {"linter": linter}})
    with reviewed.agent() as agent, project.dashboard() as dash:
        session = reviewed.begin(agent)
        for plan in ("begun", "ready"):
            reviewed.report(agent, session, {"plan.md": plan, "prices.csv": "1"})
        piece = dash.get(f"api/sessions/{session}/steps/plan")
        assert [(attempt["number"], attempt["given_back"]) for attempt in piece["attempts"]] == [(1, True), (2, True)]
        [step] = [step for step in dash.get(f"api/sessions/{session}")["steps"] if step["id"] == "plan"]
        assert [(review["attempt"], review["passed"]) for review in step["reviews"]] == [(1, None), (2, True)]
        assert step["attempts"] == 0


def test_of_two_people_the_first_decides_and_the_second_is_told(project, reviewed):
    with reviewed.agent() as agent, project.dashboard() as dash:
        (_, ann), (_, ben) = dash.log_in(), dash.log_in()
        session = reviewed.begin(agent)
        reviewed.report(agent, session, stories.files())
        item = item_of(dash)
        answers = [("pass", ann, "Fine."), ("changes", ben, "Shorter.")] * 3

        def status_of(answer):
            action, person, text = answer
            return decide(dash, action, person, text=text, item=item).status

        with ThreadPoolExecutor(6) as threads:
            statuses = [*threads.map(status_of, answers)]
        assert sorted(statuses) == [200] + [409] * 5
        [attempt] = dash.get(f"api/sessions/{session}/steps/plan")["attempts"]
        [decided] = [reviewer for reviewer in attempt["reviewers"] if reviewer["by"]]
        assert decided["passed"] == (answers[statuses.index(200)][0] == "pass")


def test_comments_on_lines_that_are_not_there_are_refused_and_change_nothing(project, reviewed):
    with reviewed.agent() as agent, project.dashboard() as dash:
        _, person = dash.log_in()
        session = reviewed.begin(agent)
        reviewed.report(agent, session, stories.files())
        for comments in (
            [{**MUST, "line": 99}],
            [{**MUST, "file": "notes.md"}],
            [{**MUST, "line": "9"}],
            [MUST, {"file": "plan.md"}],
            "c1",
            {"file": "plan.md"},
        ):
            assert decide(dash, "changes", person, comments=comments).status == 400, comments
        assert decide(dash, "retry", person, text="Again", comments=[MUST]).status == 400
        assert dash.get(f"api/sessions/{session}/steps/plan")["attempts"][0]["result"] == "waiting"


def test_of_a_step_that_no_person_reviews_the_newest_files_are_shown_if_they_are_what_was_judged(project):
    with project.dashboard() as dash:
        project.write("bad.md", "bad\n")
        import anyio

        async def work():
            async with project.agent("core") as agent:
                first_step = await agent.start("report", "main")
                project.write("gather.md")
                await agent.finish({"gather.md": "gather.md"}, session_id=first_step["session_id"])
                project.write("write.md", "bad\n")
                await agent.finish({"write.md": "write.md"}, session_id=first_step["session_id"])
                return first_step["session_id"]

        session = anyio.run(work)
        path = f"api/sessions/{session}/steps/write/files"
        [file] = dash.get(path)["files"]
        assert file["lines"] == ["bad"]
        project.write("write.md", "better\n")
        [file] = dash.get(path)["files"]
        assert (file["lines"], file["note"]) == (None, "unkept")
