"""Whoever does not touch a mouse gets everywhere."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.slow


def focused(page):
    return page.evaluate("document.activeElement.textContent.trim()")


def test_j_and_k_go_through_rows_and_enter_opens_one(dashboard, page):
    dashboard.enter(page, "#/sessions")
    rows = page.locator(".item-title")
    rows.first.wait_for()
    names = rows.all_inner_texts()
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert focused(page) == names[1]
    page.keyboard.press("k")
    assert focused(page) == names[0]
    page.keyboard.press("Enter")
    page.get_by_role("heading", level=1, name=names[0]).wait_for()
    page.keyboard.press("u")
    page.get_by_role("heading", level=1, name="Sessions").wait_for()


def test_g_and_a_letter_go_to_each_view(dashboard, page):
    dashboard.enter(page)
    names = {
        "o": "Overview",
        "s": "Sessions",
        "p": "Plans",
        "t": "Tracked work",
        "a": "Agents",
        "v": "Reviews",
        "e": "Events",
        "i": "Inbox",
    }
    for key, name in names.items():
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.get_by_role("heading", level=1, name=name).wait_for()
        # Readers of the screen are told where they are.
        page.locator("h1:focus").wait_for()


def test_the_keys_are_shown_and_escape_closes_them(dashboard, page):
    dashboard.enter(page)
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog", name="Keys").wait_for(state="hidden")


def test_letters_in_a_field_are_letters(dashboard, page):
    dashboard.enter(page, "#/sessions")
    page.keyboard.press("/")
    page.keyboard.type("gi j?")
    assert page.locator("#search").input_value() == "gi j?"
    page.get_by_role("heading", level=1, name="Sessions").wait_for()


def test_what_waits_is_answered_without_a_mouse(make_team, serve, page):
    team = make_team()
    with team.agent("--tools", "core") as agent:
        session_id = team.start(agent, "Report of May", steps=1)
        team.fail_draft(agent, session_id)
        dashboard = serve(team.root)
        dashboard.enter(page)
        page.get_by_role("article").wait_for()
        page.keyboard.press("j")
        again = page.get_by_role("button", name="Begin the step again")
        for _ in range(10):
            page.keyboard.press("Tab")
            if again.evaluate("(button) => button === document.activeElement"):
                break
        page.keyboard.press("Enter")
        page.get_by_role("textbox", name="Note to the agent").wait_for()
        page.locator("textarea:focus").wait_for()
        page.keyboard.type("The first draft was better; begin again.")
        page.keyboard.press("Control+Enter")
        page.get_by_text("Nothing waits for you.").wait_for()
        page.get_by_role("status").filter(has_text="has begun again").first.wait_for()


def test_the_drawing_of_a_plan_is_walked_with_arrows(dashboard, page):
    dashboard.enter(page, "#/plans")
    page.get_by_role("link", name="Move billing").click()
    page.locator(".graph").focus()
    page.keyboard.press("ArrowRight")
    page.locator(".node.is-chosen", has_text="Import invoices").wait_for()
    page.keyboard.press("ArrowLeft")
    page.locator(".node.is-chosen", has_text="Write the schema").wait_for()
    scale = page.locator(".world").get_attribute("transform")
    page.keyboard.press("+")
    expect(page.locator(".world")).not_to_have_attribute("transform", scale)
    page.keyboard.press("Escape")
    page.get_by_role("complementary", name="Task").wait_for(state="detached")


def test_the_first_tab_leads_past_the_sidebar(dashboard, page):
    dashboard.enter(page, "#/sessions")
    page.reload()
    page.locator(".item").first.wait_for()
    page.keyboard.press("Tab")
    assert focused(page) == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.get_by_role("heading", level=1, name="Sessions").wait_for()
