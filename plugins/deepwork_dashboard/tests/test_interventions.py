"""A person pauses a session or a plan, lets it go on, and says something to its agent, over HTTP."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.anyio


async def test_a_person_pauses_a_session_and_speaks_to_its_agent(project, tokens):
    people = tokens("local alices-token-for-tests person\nbob bobs-token-for-tests person\n")
    project.write("plain.md", "x\n")
    async with project.agent("core") as agent:
        first_step = await agent.start("report", "main")
        session_id = first_step["session_id"]
        project.write("gather.md")
        with project.dashboard("--token-file", people) as dash:
            (_, person), (_, bob) = dash.log_in("alices-token-for-tests"), dash.log_in("bobs-token-for-tests")
            own = f"api/sessions/{session_id}"

            def intervene(action, text=None, headers=person):
                body = {"action": action, "text": text}
                return dash.ask(f"{own}/interventions", "POST", body=body, **headers).status

            program = {"token": "alices-token-for-tests"}
            assert intervene("pause", "The port is moved", headers=program) == 403
            assert intervene("pause", "The port is moved", headers=bob) == 404
            refused = [
                ("dance", "x"),
                ("pause", None),
                ("pause", " "),
                ("say", None),
                ("say", "x" * 10_001),
                ("unpause", 1),
            ]
            assert [intervene(*answer) for answer in refused] == [400] * 6
            assert intervene("unpause") == 409

            assert intervene("pause", "The port is moved") == 200
            assert intervene("pause", "Again") == 409
            assert dash.get(own, token="alices-token-for-tests")["paused"] == "The port is moved"
            report = {"outputs": {"gather.md": "gather.md"}, "session_id": session_id}
            assert "The port is moved" in await agent.refused("finished_step", **report)
            assert intervene("unpause", "Use the new port") == 200
            assert dash.get(own, token="alices-token-for-tests")["paused"] is None
            assert intervene("say", "Leave the migrations alone") == 200
            notes = dash.get(f"{own}/history?kind=note", token="alices-token-for-tests")["items"]
            assert [note["detail"]["text"] for note in notes] == ["Leave the migrations alone", "Use the new port"]


async def test_a_person_pauses_a_plan_and_lets_it_go_on(project, tokens):
    people = tokens("local alices-token-for-tests person\n")
    with project.dashboard("--token-file", people) as dash:
        _, person = dash.log_in("alices-token-for-tests")
        token = {"token": "alices-token-for-tests"}

        def intervene(action, text=None, headers=person):
            body = {"action": action, "text": text}
            return dash.ask(f"api/plans/{plan}/interventions", "POST", body=body, **headers).status

        plan = "wf_000000000000"
        assert intervene("pause", "The budget is spent") == 404
        async with project.agent("orchestration") as agent:
            created = await agent.call("workflow_create", name="q3", source_type="custom", source_content="x")
            plan, task = created["id"], {"name": "first", "description": "d", "sequence": 1}
            await agent.call("workflow_set_plan", id=plan, plan={"summary": "s", "approach": "a", "tasks": [task]})
            [task] = (await agent.call("workflow_get", id=plan, include_tasks=True))["tasks"]
            worker = (await agent.call("agent_register", name="w", runtime="custom"))["id"]
            assert intervene("pause", "The budget is spent", headers=token) == 403
            refused = [("say", "x"), ("pause", None), ("pause", " "), ("unpause", "x" * 10_001)]
            assert [intervene(*answer) for answer in refused] == [400] * 4
            assert intervene("unpause") == 409

            assert intervene("pause", "The budget is spent") == 200
            assert intervene("pause", "Again") == 409
            paused_plan = dash.get(f"api/plans/{plan}", **token)
            assert (paused_plan["paused"], paused_plan["next_tasks"]) == ("The budget is spent", [])
            for query in ("", "?status=paused"):
                [plan_in_list] = dash.get(f"api/plans{query}", **token)["items"]
                assert (plan_in_list["id"], plan_in_list["paused"]) == (plan, "The budget is spent")
            claim = {"task_id": task["id"], "agent_id": worker}
            assert "The budget is spent" in await agent.refused("task_claim", **claim)
            assert intervene("unpause", "Go on") == 200
            assert dash.get(f"api/plans/{plan}", **token)["paused"] is None
            assert dash.get("api/plans?status=paused", **token)["items"] == []
            assert (await agent.call("task_claim", **claim))["success"]
