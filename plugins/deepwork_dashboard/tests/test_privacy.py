"""Sessions are their principal's alone; files are the reported ones; attacks change nothing."""

from __future__ import annotations

import anyio
import pytest
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from websockets.exceptions import InvalidStatus

from deepwork.testing import Agent

pytestmark = pytest.mark.anyio

ALICE, BOB = "alices-token-for-tests", "bobs-token-for-tests"


def agent_of(dash, token):
    transport = StreamableHttpTransport(f"{dash.origin}/mcp", headers={"Authorization": f"Bearer {token}"})
    return Client(transport)


@pytest.mark.parametrize("store", ["json", pytest.param("sql", marks=pytest.mark.slow)])
async def test_the_sessions_of_one_principal_are_in_nothing_that_another_sees(project, tokens, listen, store):
    people = tokens(f"alice {ALICE} person\nbob {BOB} person\n")
    with project.server("--token-file", people, "--state-store", store) as dash:
        bob, alice = ({"Authorization": f"Bearer {token}"} for token in (BOB, ALICE))
        async with dash.live(**bob) as bobs, dash.live(**alice) as alices, agent_of(dash, ALICE) as client:
            for socket in (bobs, alices):
                await listen(socket, "inbox")  # a new page is told that its inbox was looked at
            agent = Agent(client)
            first_step = await agent.start("report", "main")
            project.write("gather.md")
            await agent.finish({"gather.md": "gather.md"}, session_id=first_step["session_id"])
            project.write("write.md", "bad\n")
            report = {"outputs": {"write.md": "write.md"}, "session_id": first_step["session_id"]}
            for _ in range(2):
                await agent.call("finished_step", **report)
            await agent.refused("finished_step", **report)
            thing = f"session:{first_step['session_id']}"
            await listen(alices, thing, "inbox")
            async with agent_of(dash, BOB) as client:
                bobs_step = await Agent(client).start("plain", "main")
            heard = []
            while f"session:{bobs_step['session_id']}" not in heard:
                message = await listen(bobs)
                heard += message["things"]
        assert thing not in heard
        assert "inbox" not in heard
        assert [row["thing"] for row in dash.get("api/sessions", token=ALICE)["items"]] == [thing]
        async with agent_of(dash, ALICE) as client:
            agent = Agent(client)
            archived = (await agent.start("plain", "main"))["session_id"]
            await agent.call("abort_workflow", explanation="enough", session_id=archived)
        project.write(".deepwork/config.yml", f"state: {{store: {store}}}\n")
        assert project.run("sessions", "clean", "--older-than", "0").returncode == 0
        assert [row["id"] for row in dash.get("api/sessions?status=archived", token=ALICE)["items"]] == [archived]
        lists = ("api/sessions", "api/runs", "api/sessions?status=archived", "api/inbox", "api/overview", "api/events")
        paths = (*lists, "api/search?q=goal")
        texts = "".join(dash.ask(path, token=BOB).text for path in paths)
        assert [session_id for session_id in (first_step["session_id"], archived) if session_id in texts] == []
        assert dash.get("api/overview", token=BOB)["counts"]["sessions"]["active"] == 1
        own = f"api/sessions/{first_step['session_id']}"
        for path in (own, f"{own}/history", f"{own}/preview?step=gather&path=gather.md"):
            assert (dash.ask(path, token=ALICE).status, dash.ask(path, token=BOB).status) == (200, 404), path
        [item] = dash.get("api/inbox", token=ALICE)["items"]
        answer = {"id": item["id"], "action": "abort", "text": "not mine"}
        _, on_bobs_page = dash.log_in(BOB)
        assert dash.ask("api/inbox/answer", "POST", body=answer, **on_bobs_page).status == 404
        assert dash.get(own, token=ALICE)["status"] == "active"


async def test_attacks_from_other_sites_and_by_markup_have_no_effect(project, listen):
    """Each is sent as a browser would send it for a foreign page, with the cookie of a user who is logged in."""
    hostile = '<script>fetch("/api/inbox/answer",{method:"POST"})</script>'
    async with project.agent("core") as agent:
        started = await agent.call("start_workflow", goal=hostile, job_name="report", workflow_name="main")
        session_id = started["begin_step"]["session_id"]
        project.write("gather.md")
        await agent.finish({"gather.md": "gather.md"}, session_id=session_id, notes=hostile)
        project.write("write.md", "bad\n")
        report = {"outputs": {"write.md": "write.md"}, "session_id": session_id}
        for _ in range(2):
            await agent.call("finished_step", **report)
        await agent.refused("finished_step", **report)
    with project.dashboard() as dash:
        page, action = dash.log_in()
        [item] = dash.get("api/inbox")["items"]
        body = {"id": item["id"], "action": "abort", "text": "attacked"}
        evil, neighbour = "http://evil.example", f"http://127.0.0.1:{int(dash.netloc.split(':')[1]) + 1}"
        attacks = {
            "a form of another site": {"Origin": evil, "Content_Type": "text/plain", "Sec_Fetch_Site": "cross-site"},
            "a script of another site": {"Origin": evil, "X_CSRF_Token": "guessed"},
            "a page of another port": {"Origin": neighbour, "Sec_Fetch_Site": "same-site"},
            "a sandboxed frame": {"Origin": "null"},
            "no Origin at all": {},
            "our Origin without the token of the page": {"Origin": dash.origin},
            "a rebound name": {"Origin": "http://evil.example", "Host": "evil.example"},
        }
        for name, headers in attacks.items():
            answer = dash.ask("api/inbox/answer", "POST", body=body, **page, **headers)
            assert answer.status in (403, 421), name
        for method in ("GET", "PUT", "DELETE"):
            assert dash.ask("api/inbox/answer", method, **action).status in (404, 405), method
        for origin in (evil, neighbour, "null"):
            with pytest.raises(InvalidStatus, match="403"):
                async with dash.live(Cookie=page["Cookie"], Origin=origin):
                    pass
        for path in (
            "static/../../plugin.py",
            "static/%2e%2e/plugin.py",
            "static//etc/passwd",
            "static/..%2f..%2fapp.py",
        ):
            assert dash.ask(path, token=None).status in (401, 404), path
        answer = dash.ask(f"api/sessions/{session_id}")
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert (answer.json()["goal"], answer.json()["steps"][0]["notes"]) == (hostile, hostile)
        assert answer.json()["status"] == "active"
        assert [row["id"] for row in dash.get("api/inbox")["items"]] == [item["id"]]


async def test_a_person_answers_on_the_page_and_a_program_with_the_token_overrides_nothing(project, listen):
    async with project.agent("core") as agent:
        first_step = await agent.start("report", "main")
        session_id = first_step["session_id"]
        project.write("gather.md")
        await agent.finish({"gather.md": "gather.md"}, session_id=session_id)
        project.write("write.md", "bad\n")
        report = {"outputs": {"write.md": "write.md"}, "session_id": session_id}
        for _ in range(2):
            await agent.call("finished_step", **report)
        await agent.refused("finished_step", **report)
        with project.dashboard() as dash:
            _, action = dash.log_in()
            [item] = dash.get("api/inbox")["items"]
            body = {"id": item["id"], "action": "override", "text": "I have read it", "state": item["state"]}
            refused = dash.ask("api/inbox/answer", "POST", body=body)
            assert (refused.status, "a person" in refused.json()["error"]["message"]) == (403, True), refused.text
            assert dash.ask("api/inbox/answer", "POST", body={**body, "text": " "}, **action).status == 400
            assert dash.ask("api/inbox/answer", "POST", body={**body, "action": "dance"}, **action).status == 400
            assert dash.ask("api/inbox/answer", "POST", body={**body, "state": "old"}, **action).status == 409
            async with dash.live() as socket:
                await socket.recv()
                answer = dash.ask("api/inbox/answer", "POST", body=body, **action)
                assert (answer.status, "write" in answer.json()["done"]) == (200, True), answer.text
                await listen(socket, "inbox", f"session:{session_id}")
            assert dash.get("api/inbox")["items"] == []
            assert dash.ask("api/inbox/answer", "POST", body=body, **action).status == 404
            override = dash.get(f"api/sessions/{session_id}")["steps"][1]["override"]
            assert (override["by"], override["reason"], override["who"]) == ("person", "I have read it", "local")
            [entry] = dash.get(f"api/sessions/{session_id}/history?kind=override")["items"]
            assert entry["detail"]["client"] == "dashboard"
        await agent.finish({"write.md": "write.md"}, session_id=session_id)


async def test_a_malformed_answer_is_refused_in_words(project):
    with project.dashboard() as dash:
        _, action = dash.log_in()
        for body, text in (
            (b"{", "not JSON"),
            (b"[" * 100_000, "not JSON"),
            (b"[]", "not an object"),
            (b'{"id": 1, "action": "x"}', "id is a text"),
            (b'{"id": "x", "action": "x", "text": []}', "text is a text, or null"),
        ):
            answer = dash.ask("api/inbox/answer", "POST", body=body, **action)
            assert (answer.status, text in answer.json()["error"]["message"]) == (400, True), answer.text
    await anyio.lowlevel.checkpoint()
