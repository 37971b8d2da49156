"""On the page of a session or a plan a person stops agents and speaks to them, and sees what verdicts rest on."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from deepwork.testing import Refused

pytestmark = pytest.mark.slow


def test_a_person_pauses_a_session_lets_it_go_on_and_speaks_to_its_agent(make_team, serve, page):
    team = make_team()
    with team.agent("--tools", "core") as agent:
        session_id = team.start(agent, "Report of May", steps=1)
        dashboard = serve(team.root)
        dashboard.enter(page, f"#/sessions/{session_id}")
        page.get_by_role("button", name="Pause", exact=True).click()
        page.get_by_label("Why it has to wait").fill("The ledger is closed until Monday.")
        page.get_by_role("button", name="Pause", exact=True).last.click()
        page.get_by_text("A person has paused this session.").wait_for()
        with pytest.raises(Refused, match="The ledger is closed until Monday"):
            team.finish(agent, session_id, 1)
        page.get_by_role("button", name="Let it go on").click()
        page.locator("form").get_by_role("button", name="Let it go on").click()
        page.get_by_text("A person has paused this session.").wait_for(state="detached")
        page.get_by_role("button", name="Say to the agent").click()
        page.get_by_label("What the agent should know").fill("Round to thousands.")
        page.get_by_role("button", name="Say it").click()
        page.get_by_role("status").filter(has_text="told at its next call").first.wait_for()
        assert team.finish(agent, session_id, 1)["status"] == "next_step"
        page.get_by_role("link", name="History").click()
        page.get_by_text("Round to thousands.").first.wait_for()


def test_a_person_pauses_a_plan_and_lets_it_go_on(make_team, new_task, serve, page):
    team = make_team()
    with team.agent("--tools", "orchestration") as agent:
        plan_id, tasks = team.plan(agent, "Migration", [new_task("Schema"), new_task("Import", "Schema")])
        worker = team.register(agent, "Worker")
        dashboard = serve(team.root)
        dashboard.enter(page, f"#/plans/{plan_id}")
        page.get_by_text("Can be started now").wait_for()
        page.get_by_role("button", name="Pause", exact=True).press("Enter")
        page.get_by_label("Why it has to wait").fill("The budget is spent.")
        page.locator("form").get_by_role("button", name="Pause", exact=True).press("Enter")
        banner = page.get_by_text("A person has paused this plan.")
        banner.wait_for()
        expect(page.get_by_text("Can be started now")).to_have_count(0)
        with pytest.raises(Refused, match="The budget is spent"):
            agent.call("task_claim", task_id=tasks["Schema"], agent_id=worker)
        page.get_by_role("button", name="Let it go on").click()
        page.get_by_label("What its agents should know, if anything").fill("There is money again.")
        page.locator("form").get_by_role("button", name="Let it go on").click()
        banner.wait_for(state="detached")
        assert agent.call("task_claim", task_id=tasks["Schema"], agent_id=worker)["success"]


def test_a_verdict_says_that_its_gate_cannot_fail(make_team, serve, page):
    gate = {"runner": "anything", "commands": {"anything": {"run": ["true"], "verdict": "exit_code"}}}
    team = make_team(settings={"quality_gate": gate})
    with team.agent("--tools", "core") as agent:
        session_id = team.start(agent, "Report of May", steps=2)
    dashboard = serve(team.root)
    dashboard.enter(page, f"#/sessions/{session_id}?step=draft")
    page.get_by_text("cannot fail", exact=True).wait_for()
