"""The first minutes of a person: open the address, see what waits, answer it, and see the agent go on."""

from __future__ import annotations

import re

from playwright.sync_api import expect


def test_a_person_answers_what_waits_and_sees_the_session_go_on_without_a_reload(make_team, serve, page):
    """The whole way once, with a real agent on the other side."""
    team = make_team()
    with team.agent("--tools", "core") as agent:
        session_id = team.start(agent, "Report of May", steps=1)
        team.fail_draft(agent, session_id)

        dashboard = serve(team.root)
        dashboard.enter(page)

        assert "token" not in page.url
        item = page.get_by_role("article").filter(has_text="Report of May")
        assert "primary" not in item.get_by_role("button", name="Let it pass").get_attribute("class")
        expect(item.locator(".button.primary")).to_have_count(1)
        criteria = item.get_by_role("region", name="Criteria")
        criteria.get_by_text("Does every figure name the source it comes from?").wait_for()
        item.get_by_role("button", name=f"report-{session_id[:4]}.md").click()
        item.get_by_text("Draft 3.").wait_for()
        item.get_by_role("button", name="Let it pass").click()
        item.get_by_label("Reason").fill("The sources are in the ledger; I looked them up.")
        item.get_by_role("button", name="Let it pass").last.click()

        page.get_by_text("Nothing waits for you.").wait_for()
        page.evaluate("window.isTheSamePage = true")

        dashboard.open(page, f"#/sessions/{session_id}")
        page.get_by_role("heading", name="Draft the report").wait_for()
        assert page.title().startswith("Report of May · ")
        team.finish(agent, session_id, 1)
        page.get_by_role("heading", name="Draw charts").wait_for()
        page.get_by_role("link", name="Draft the report").click()
        page.get_by_text("Passed by override").wait_for()
        page.get_by_text("The sources are in the ledger").wait_for()
        assert page.evaluate("window.isTheSamePage") is True
        assert re.search(rf"#/sessions/{session_id}\?step=draft", page.url)


def test_a_person_describes_a_failed_task_of_a_stuck_plan_anew(make_team, serve, new_task, page):
    """Of two failed tasks the chosen one alone is pending again, and the page says so for a while."""
    team = make_team()
    with team.agent("--tools", "orchestration") as agent:
        tasks = [
            new_task("Round the VAT"),
            new_task("Add the fees"),
            new_task("Release", "Round the VAT", "Add the fees", sequence=2),
        ]
        plan_id, ids = team.plan(agent, "Invoices of May", tasks)
        grace = team.register(agent, "Grace")
        for name in ("Round the VAT", "Add the fees"):
            agent.call("task_claim", task_id=ids[name], agent_id=grace)
            team.move(agent, ids[name], "planning", "in_progress", "failed", error=f"{name}: the table is missing.")

        dashboard = serve(team.root)
        dashboard.enter(page)
        item = page.get_by_role("article").filter(has_text="Invoices of May: nothing can go on")
        item.get_by_role("button", name="Describe it anew").click()
        item.get_by_label("Task").select_option(label="Round the VAT")
        item.get_by_label("Description").fill("Round each line to the cent; the table is in rates.csv.")
        item.get_by_role("button", name="Describe it anew").last.click()

        page.get_by_text("Nothing waits for you.").wait_for()
        toast = page.locator(".toast")
        toast.get_by_text("'Round the VAT' is pending again, with the new description").wait_for()
        toast.get_by_role("button", name="Close").click()
        toast.wait_for(state="detached")

        task = agent.call("task_get", id=ids["Round the VAT"])
        assert (task["status"], task["description"][:15]) == ("pending", "Round each line")
        dashboard.open(page, f"#/plans/{plan_id}?task={ids['Add the fees']}")
        panel = page.get_by_role("complementary", name="Task")
        panel.get_by_text("Failed, reported by Grace").wait_for()
        assert panel.get_by_role("link", name="Grace").get_attribute("href") == f"#/agents/{grace}"
