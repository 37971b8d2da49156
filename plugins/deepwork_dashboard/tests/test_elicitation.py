"""A client whose user can open addresses shows the page of what waits for them, as long as a dashboard runs."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

from deepwork.testing import Agent

pytestmark = pytest.mark.anyio

DONE = {"write.md": "write.md"}
WISH = {"outputs": DONE, "quality_review_override_reason": "It is fine"}


class User:
    """The user of a client, who sees what it shows and does what the test wants with it."""

    def __init__(self, answer="accept"):
        self.answer = answer
        self.shown = []

    async def __call__(self, message, response_type, params, context):
        self.shown.append(params)
        if self.answer == "fail":
            raise RuntimeError("no browser")
        return ElicitResult(action=self.answer, content={"allow": False} if params.mode == "form" else None)

    @property
    def addresses(self):
        return [params.url for params in self.shown]


@asynccontextmanager
async def connected(way, user, mode):
    async with Client(way, mode=mode, elicitation_handler=user) as client:
        agent = Agent(client)
        begin = await agent.start("report")
        agent.session_id = begin["session_id"]
        await agent.finish({"gather.md": "gather.md"}, session_id=agent.session_id)
        yield agent


@asynccontextmanager
async def over_stdio(project, user, mode="auto"):
    command = ["-m", "deepwork", "serve", "--path", str(project.root), "--tools", "core"]
    log = project.root.parent / "server.log"
    way = StdioTransport(sys.executable, command, env={**os.environ, **project.env}, keep_alive=False, log_file=log)
    async with connected(way, user, mode) as agent:
        yield agent


@pytest.fixture
def with_work(project):
    for name in ("gather", "write", "check"):
        project.write(f"{name}.md", "good")
    return project


@pytest.fixture
def by_person(with_work):
    """A person reviews the step `write`."""
    configure(with_work, runner="person")
    return with_work


@pytest.fixture
def strict(with_work):
    """Only a person lets a step pass without a review."""
    configure(with_work, strict=True)
    return with_work


def configure(project, **gate):
    file = Path(project.env["XDG_CONFIG_HOME"]) / "deepwork" / "config.yml"
    config = json.loads(file.read_text())
    config["quality_gate"].update(gate)
    file.write_text(json.dumps(config))


def notes(project):
    return [*(Path(project.env["XDG_STATE_HOME"]) / "deepwork" / "pages").rglob("*.json")]


def address_of(refusal):
    return re.search(r"open (\S+) and answer there", refusal)[1]


@pytest.mark.parametrize("answer", ["accept", "decline", "cancel"])
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_page_of_a_review_is_opened_once_and_the_decision_comes_from_there(by_person, mode, answer):
    user = User(answer)
    with by_person.dashboard() as dash:
        async with over_stdio(by_person, user, mode) as agent:
            reply = await agent.finish(DONE)
            where = reply["waits_for"]["where"]
            assert where == f"{dash.url}#/inbox/sessions:{agent.session_id}.write"
            assert user.addresses == [where]
            assert user.shown[0].message == "Step 'write' of report/main waits for your review."
            assert await agent.finish(DONE) == reply  # it is neither asked nor opened again
            assert len(user.shown) == 1
            page, action = dash.log_in()
            [item] = dash.ask("api/inbox", **page).json()["items"]
            assert where.endswith(f"#/inbox/{item['id']}")
            body = {"id": item["id"], "action": "pass", "state": item["state"]}
            assert dash.ask("api/inbox/answer", "POST", body=body, **action).status == 200
            assert (await agent.finish(DONE))["status"] == "next_step"
    assert len(user.shown) == 1


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_override_is_allowed_on_the_page_and_not_by_the_client(strict, mode):
    user = User()
    with strict.dashboard() as dash:
        dash.log_in()
        async with over_stdio(strict, user, mode) as agent:
            text = await agent.refused("finished_step", **WISH)
            assert user.addresses == [address_of(text)]
            assert "Its reason: It is fine." in user.shown[0].message
            assert await agent.refused("finished_step", **WISH) == text
            assert len(user.shown) == 1
            page, action = dash.log_in()
            [item] = dash.ask("api/inbox", **page).json()["items"]
            assert address_of(text) == f"{dash.url}#/inbox/{item['id']}"
            body = {"id": item["id"], "action": "override", "text": "I have read it", "state": item["state"]}
            assert dash.ask("api/inbox/answer", "POST", body=body, **action).status == 200
            assert (await agent.finish(DONE))["status"] == "next_step"
            assert len(user.shown) == 1


async def test_a_client_that_cannot_open_it_gets_the_same_answer(by_person):
    """Over the handshake its error comes back to the server; else it ends the client's own call."""
    user = User("fail")
    with by_person.dashboard() as dash:
        dash.log_in()
        async with over_stdio(by_person, user, "legacy") as agent:
            assert (await agent.finish(DONE))["waits_for"]["where"] == user.addresses[0]


async def test_a_dashboard_that_was_killed_is_named_no_more(by_person):
    user = User()
    with by_person.dashboard() as dash:
        dash.log_in()
        [note] = notes(by_person)
        assert note.stat().st_mode & 0o777 == 0o600
        assert dash.token not in note.read_text()
        dash.end(signal.SIGKILL)
        async with over_stdio(by_person, user) as agent:
            item = f"sessions:{agent.session_id}.write"
            assert (await agent.finish(DONE))["waits_for"]["where"] == item
            assert user.shown == []
            assert notes(by_person) == [note]
            with by_person.dashboard() as dash:
                dash.log_in()
                assert (await agent.finish(DONE))["waits_for"]["where"] == f"{dash.url}#/inbox/{item}"
                assert note not in notes(by_person)
                dash.end()
            assert notes(by_person) == []
            assert (await agent.finish(DONE))["waits_for"]["where"] == item
    assert user.shown == []  # it was asked once, before there was a page


async def test_without_a_dashboard_an_override_is_asked_in_a_form(strict):
    user = User()
    async with over_stdio(strict, user) as agent:
        text = await agent.refused("finished_step", **WISH)
    assert [params.mode for params in user.shown] == ["form"]
    assert "has not let step 'write' pass" in text


async def test_a_page_that_nobody_can_log_in_to_is_not_named(by_person, tokens):
    """A random token that was shown nowhere, tokens of programs, and people of other principals."""
    token_of_program, token_of_ann = f"local {'a' * 20}\n", f"ann {'b' * 20} person\n"
    user = User()
    async with over_stdio(by_person, user) as agent:
        await agent.finish(DONE)
        for text in (token_of_program, token_of_ann):
            with by_person.dashboard("--token-file", tokens(text)) as dash:
                dash.ask("")
                assert (await agent.finish(DONE))["waits_for"]["where"].startswith("sessions:")
        with by_person.server(tokens=False) as dash:
            dash.ask("", token=None)
            assert (await agent.finish(DONE))["waits_for"]["where"].startswith("sessions:")
    assert user.shown == []


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_server_over_http_names_its_own_pages_to_clients_of_this_machine(by_person, tokens, mode):
    text = f"local {'a' * 20}\nlocal {'b' * 20} person\n"
    user = User()
    with by_person.server("--token-file", tokens(text)) as dash:
        headers = {"Authorization": f"Bearer {'a' * 20}"}
        way = StreamableHttpTransport(f"{dash.origin}/mcp", headers=headers)
        async with connected(way, user, mode) as agent:
            reply = await agent.finish(DONE, session_id=agent.session_id)
    assert reply["waits_for"]["where"] == f"{dash.url}#/inbox/sessions:{agent.session_id}.write"
    assert user.addresses == [reply["waits_for"]["where"]]


async def test_a_client_of_another_machine_is_not_sent_to_an_address_of_this_one(by_person, tokens):
    text = f"local {'a' * 20}\nlocal {'b' * 20} person\n"
    user = User()
    with by_person.server("--token-file", tokens(text), "--allowed-host", "build.example") as dash:
        headers = {"Authorization": f"Bearer {'a' * 20}", "Host": f"build.example:{dash.netloc.rpartition(':')[2]}"}
        way = StreamableHttpTransport(f"{dash.origin}/mcp", headers=headers)
        async with connected(way, user, "auto") as agent:
            reply = await agent.finish(DONE, session_id=agent.session_id)
    assert reply["waits_for"]["where"] == f"sessions:{agent.session_id}.write"
    assert user.shown == []
