"""Sessions over what agents of other processes have done, in files and in a database, and what a browser is given."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import deepwork_dashboard


def test_the_session_says_who_is_there_and_which_views_there_are(filled):
    dash, _ = filled
    session = dash.get("api/session")
    assert (session["principal"], session["person"], session["csrf"]) == ("local", False, None)
    assert session["views"] == ["inbox", "overview", "sessions", "plans", "work", "agents", "reviews", "events"]
    assert session["database"] == {"dialect": "sqlite", "problem": None}


def test_sessions_are_listed_the_last_changed_first_and_found_by_status_job_and_words(filled):
    dash, ids = filled
    rows = dash.get("api/sessions")["items"]
    assert [row["id"] for row in rows] == [ids["done"], ids["session"]]
    assert (rows[1]["step"], rows[1]["position"], rows[1]["waits"]) == ("write", [2, 3], True)
    assert rows[0]["status"] == "completed"
    for query in ("status=active", "job=report", "q=REPORT", f"q={ids['session'][:12]}+goal"):
        assert [row["id"] for row in dash.get(f"api/sessions?{query}")["items"]] == [ids["session"]], query
    assert dash.get("api/sessions?q=report+plain") == {"items": [], "next": None, "total": 0}


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
