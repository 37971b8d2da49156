"""The form of what the API answers: pages, errors, headers, and the keys that the reference shows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs/reference"
REFERENCE = (DOCS / "dashboard.md").read_text()
# Objects whose keys are words, ids, or anything that agents wrote.
OPEN = {"plans", "tasks", "work", "agents", "plan_detail", "context", "data", "reference", "detail", "body"}


def test_lists_are_given_in_pages(filled):
    dash, ids = filled
    first = dash.get("api/sessions?limit=1")
    second = dash.get(f"api/sessions?limit=1&cursor={first['next']}")
    assert [row["id"] for page in (first, second) for row in page["items"]] == [ids["done"], ids["session"]]
    assert (first["total"], second["next"]) == (2, None)


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
