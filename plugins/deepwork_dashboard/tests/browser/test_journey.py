"""The first minutes of a person: open the address, see what waits, answer it, and see the agent go on."""

from __future__ import annotations

import re


def test_a_person_answers_what_waits_and_sees_the_run_go_on_without_a_reload(make_team, serve, page):
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
        assert item.locator(".button.primary").count() == 1
        item.get_by_role("button", name="Let it pass").click()
        item.get_by_label("Reason").fill("The sources are in the ledger; I looked them up.")
        item.get_by_role("button", name="Let it pass").last.click()

        page.get_by_text("Nothing waits for you.").wait_for()
        page.evaluate("window.isTheSamePage = true")

        dashboard.open(page, f"#/runs/{session_id}")
        page.get_by_role("heading", name="Draft the report").wait_for()
        assert page.title().startswith("Report of May · ")
        team.finish(agent, session_id, 1)
        page.get_by_role("heading", name="Draw charts").wait_for()
        page.get_by_role("link", name="Draft the report").click()
        page.get_by_text("Passed by override").wait_for()
        page.get_by_text("The sources are in the ledger").wait_for()
        assert page.evaluate("window.isTheSamePage") is True
        assert re.search(rf"#/runs/{session_id}\?step=draft", page.url)
