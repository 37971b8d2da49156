"""What a client can show its user, and what a call answers whatever the client does with it."""

from __future__ import annotations

import os
from contextlib import contextmanager

import anyio
import pytest
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult

from deepwork.models.reviews import Waiting
from deepwork.paths.served_pages import ServedPages
from deepwork.paths.user_folders import user_config_file, user_state_dir
from deepwork.server import elicitation
from deepwork.testing import Agent, StdioWire, start_server
from deepwork.testing.wire import PATIENCE

pytestmark = pytest.mark.anyio

DONE = {"a.md": "a.md"}
PAGE = "http://127.0.0.1:8787/#/inbox/"


@pytest.fixture
def serving(reviewed):
    """Serve pages on which people of these principals can answer."""

    @contextmanager
    def serving(*people, address=PAGE + "{id}"):
        with ServedPages(user_state_dir(os.environ), reviewed.root).noted(address, people or ["local"]):
            yield

    return serving


@pytest.fixture
def by_person(reviewed):
    return reviewed.server(external_runner="person")


@pytest.fixture
def strict(reviewed):
    """A process whose gate only a person lets anything pass without a review."""
    file = user_config_file(os.environ)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("quality_gate: {strict: true, runner: person}\n")
    process = start_server(reviewed.root, "--tools", "core")
    wire = StdioWire(process, mode="modern")
    yield wire
    wire.close()


def asked(wire, capabilities, tool, **arguments):
    """Call a tool as a client with these capabilities, and give the mode in which it is to ask, or the answer."""
    about = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    }
    result = wire.request("tools/call", _meta=about, name=tool, arguments=arguments)["result"]
    if "inputRequests" in result:
        [question] = result["inputRequests"].values()
        return question["params"]["mode"]
    return result


FORM, URL = {"form": {}}, {"url": {}}


def test_an_override_is_asked_by_a_page_where_there_is_one_and_else_in_a_form(strict, serving):
    def wish(elicits):
        session = asked(strict, {}, "start_workflow", goal="g", job_name="demo", workflow_name="main")
        session_id = session["structuredContent"]["begin_step"]["session_id"]
        answer = asked(
            strict,
            {} if elicits is None else {"elicitation": elicits},
            "finished_step",
            outputs=DONE,
            session_id=session_id,
            quality_review_override_reason="It is fine",
        )
        return answer if isinstance(answer, str) else PAGE in answer["content"][0]["text"]

    clients = (None, {}, FORM, URL, FORM | URL)
    assert [wish(client) for client in clients] == [False, "form", "form", False, "form"]
    with serving():
        assert [wish(client) for client in clients] == [True, "form", "form", "url", "url"]


async def test_a_user_who_never_answers_holds_up_a_call_for_a_while(by_person, serving, monkeypatch):
    """The call is answered before the client's handler has come back."""
    monkeypatch.setattr(elicitation, "SHOW_SECONDS", 0.2)
    urls, is_over = [], anyio.Event()

    async def never(message, response_type, params, context):
        urls.append(params.url)
        await is_over.wait()

    with serving():
        async with Client(by_person, mode="legacy", elicitation_handler=never) as client:
            agent = Agent(client)
            await agent.start()
            with anyio.fail_after(PATIENCE):
                reply = await agent.finish(DONE)
                assert await agent.finish(DONE) == reply
            is_over.set()
    assert urls == [reply["waits_for"]["where"]]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_calls_that_share_a_review_open_one_page(reviewed, by_person, serving, mode, stored):
    urls = []

    async def accept(message, response_type, params, context):
        urls.append(params.url)
        return ElicitResult(action="accept")

    with serving():
        async with Client(by_person, mode=mode, elicitation_handler=accept) as client:
            agent = Agent(client)
            begin = await agent.start()
            replies = []

            async def report():
                replies.append(await agent.finish(DONE))

            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(report)
    item = f"sessions:{begin['session_id']}.a"
    assert {reply["waits_for"]["where"] for reply in replies} == {PAGE + item}
    assert urls == [PAGE + item]
    [asked_for] = [entry["detail"] for entry in stored()["history"] if entry["kind"] == "person_asked"]
    assert asked_for["reference"] == item  # an address may be another one tomorrow, so none is stored


async def test_the_newest_page_counts_of_those_for_this_principal(by_person, serving):
    with serving(), serving(address="http://127.0.0.1:1/{id}"), serving("ann", address="http://127.0.0.1:2/{id}"):
        async with Client(by_person) as client:
            agent = Agent(client)
            begin = await agent.start()
            where = (await agent.finish(DONE))["waits_for"]["where"]
    assert where == f"http://127.0.0.1:1/sessions:{begin['session_id']}.a"


async def test_a_place_of_a_plugin_stays_as_it_is(reviewed, served, judge, serving):
    """A runner of a plugin may ask people elsewhere than in the inbox."""
    runner = judge(lambda _: Waiting("https://forge.example/42", "Somebody looks at it there."))
    with serving():
        async with Client(served(runner)) as client:
            agent = Agent(client)
            await agent.start()
            assert (await agent.finish(DONE))["waits_for"]["where"] == "https://forge.example/42"
