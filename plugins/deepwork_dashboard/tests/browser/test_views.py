"""Every view shows what agents have done, is free of what axe objects to, and fits a small screen."""

from __future__ import annotations

import subprocess
import sys
from urllib.error import URLError

import browsing
import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.slow

SMALL = 360


@pytest.fixture(scope="module")
def addresses(story, dashboard, browser):
    """The address of every view of the story, by name."""
    page = browser.new_page()
    dashboard.enter(page)

    def read(path):
        return page.evaluate("(path) => fetch(path).then((response) => response.json())", path)

    sessions = {session["goal"]: session["id"] for session in read("api/sessions")["items"]}
    [plan] = [plan["id"] for plan in read("api/plans")["items"] if "billing" in plan["name"]]
    tasks = {row[1]: row[0] for row in read(f"api/plans/{plan}/graph")["rows"]}
    work = read("api/work")["items"][0]["id"]
    agent = read("api/agents")["items"][0]["id"]
    event = read("api/events")["items"][0]["id"]
    page.close()
    stuck, compared = sessions["Report of May 2026 for the board"], sessions["Explain the growth of storage costs"]
    return {
        "inbox": "#/inbox",
        "overview": "#/overview",
        "sessions": "#/sessions",
        "no such session": "#/sessions?q=nothing-has-this-name",
        "a session that waits": f"#/sessions/{stuck}",
        "a session": f"#/sessions/{compared}?step=draft",
        "history": f"#/sessions/{compared}?tab=history",
        "about a session": f"#/sessions/{compared}?tab=about",
        "graph of a session": f"#/sessions/{compared}?tab=graph",
        "plans": "#/plans",
        "a plan": f"#/plans/{plan}",
        "a task": f"#/plans/{plan}?task={tasks['Reconcile sums']}",
        "tasks": f"#/plans/{plan}?tab=table&task={tasks['Import invoices']}",
        "messages of a plan": f"#/plans/{plan}?tab=messages",
        "about a plan": f"#/plans/{plan}?tab=about",
        "work": "#/work",
        "phases": f"#/work/{work}",
        "decisions": f"#/work/{work}?tab=decisions",
        "issues": f"#/work/{work}?tab=issues",
        "milestones": f"#/work/{work}?tab=milestones",
        "agents": "#/agents",
        "an agent": f"#/agents/{agent}",
        "messages": "#/messages",
        "rules": "#/reviews",
        "passes": "#/reviews?tab=passes",
        "events": "#/events",
        "an event": f"#/events?id={event}",
        "search": "#/search?q=import",
        "nothing": "#/nothing",
    }


def test_an_item_of_the_inbox_comes_first_at_its_own_address(dashboard, page):
    dashboard.enter(page)
    items = page.evaluate("() => fetch('api/inbox').then((response) => response.json())")["items"]
    last = items[-1]
    dashboard.open(page, f"#/inbox/{last['id']}")
    expect(page.locator(".inbox-item").first).to_contain_text(last["title"])
    expect(page.locator(".inbox-item.is-chosen")).to_have_count(1)
    expect(page.locator(".inbox-item")).to_have_count(len(items))


@pytest.mark.external
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_view(dashboard, addresses, new_page, scheme):
    """28 views in each theme, and the same small."""
    try:
        axe = browsing.axe()
    except URLError as error:
        pytest.skip(f"AXE IS NOT HERE: {error}")
    violations_by_view = {}
    for width in (1280, SMALL):
        page = new_page(scheme=scheme, width=width, bypass_csp=True)
        dashboard.enter(page)
        page.evaluate(axe)
        for name, address in addresses.items():
            dashboard.open(page, address)
            browsing.settle(page)
            if violations := browsing.violations(page):
                violations_by_view[name, width] = violations
    assert violations_by_view == {}


@pytest.mark.external
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_before_the_login_or_in_an_open_form(dashboard, new_page, scheme):
    try:
        axe = browsing.axe()
    except URLError as error:
        pytest.skip(f"AXE IS NOT HERE: {error}")
    page = new_page(scheme=scheme, bypass_csp=True)
    dashboard.open(page, "")
    page.evaluate(axe)
    assert browsing.violations(page) == []

    dashboard.enter(page)
    page.evaluate(axe)
    page.get_by_role("button", name="Let it pass").first.click()
    page.get_by_label("Reason").wait_for()
    assert browsing.violations(page) == []
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    assert browsing.violations(page) == []


def test_no_view_is_wider_than_a_small_screen(dashboard, addresses, new_page):
    page = new_page(width=SMALL, height=740)
    dashboard.enter(page)
    wider = {}
    for name, address in addresses.items():
        dashboard.open(page, address)
        browsing.settle(page)
        if (width := page.evaluate("document.documentElement.scrollWidth")) > SMALL:
            wider[name] = width
    assert wider == {}


def test_the_page_of_a_session_says_what_was_judged_and_why_it_failed(dashboard, addresses, page):
    dashboard.enter(page, addresses["a session"])
    page.get_by_text("Attempt 3", exact=True).wait_for()
    expect(page.locator(".attempt-card")).to_have_count(3)
    newest = page.locator(".attempt-card").first
    expect(newest.get_by_role("img", name="Passed")).to_have_count(4)
    page.get_by_text("Attempt 2", exact=True).click()
    page.get_by_text("Two figures in the second paragraph have no source.").first.wait_for()
    page.get_by_text("claude-sonnet-5").first.wait_for()


def test_an_output_is_shown_on_the_spot(dashboard, addresses, page):
    dashboard.enter(page, addresses["a session"])
    page.get_by_role("button", name="report-").click()
    page.get_by_text("Revenue grew by 12 %. Source: ledger").wait_for()


def test_a_blocked_task_says_what_it_waits_for_and_leads_there(dashboard, addresses, page):
    dashboard.enter(page, addresses["a task"])
    panel = page.get_by_role("complementary", name="Task")
    panel.get_by_text("Why it is blocked").wait_for()
    panel.get_by_role("link", name="Import payments").first.click()
    panel.get_by_role("heading", name="Import payments").wait_for()
    panel.get_by_text("The dump of 2021 is truncated").wait_for()


def test_checkpoints_and_the_claim_of_a_task_are_shown(dashboard, addresses, page):
    dashboard.enter(page, addresses["tasks"])
    panel = page.get_by_role("complementary", name="Task")
    panel.get_by_text("Credit notes become negative invoices").wait_for()
    panel.get_by_text("The lease ends in").wait_for()
    expect(panel.get_by_role("link", name="Linus")).to_have_count(1)


def test_a_click_on_a_drawn_task_opens_it_and_the_address_can_be_shared(dashboard, addresses, page):
    dashboard.enter(page, addresses["a plan"])
    page.locator(".node", has_text="Import payments").click()
    page.get_by_role("complementary", name="Task").get_by_role("heading", name="Import payments").wait_for()
    shared = page.url
    page.goto("about:blank")
    page.goto(shared)
    page.get_by_role("complementary", name="Task").get_by_role("heading", name="Import payments").wait_for()


def test_tracked_work_shows_the_files_of_a_task_and_what_waits(dashboard, addresses, page):
    dashboard.enter(page, addresses["phases"])
    page.get_by_role("region", name="Waits for a person").get_by_text("lost all keys").first.wait_for()
    page.locator("summary", has_text="Add the table of keys").click()
    files = page.locator(".files")
    files.get_by_text("src/passkeys.py").wait_for()
    expect(files.get_by_title("added")).to_have_count(1)
    expect(files.get_by_title("deleted")).to_have_count(1)


def test_the_graph_of_a_session_shows_its_steps_and_opens_one(dashboard, addresses, page):
    dashboard.enter(page, addresses["graph of a session"])
    steps = page.locator(".node")
    names = [text.split(" (")[0] for text in steps.locator("title").all_text_contents()]
    page.locator(".graph").focus()
    page.keyboard.press("ArrowRight")
    page.locator(".node.is-chosen").wait_for()
    chosen = page.locator(".node.is-chosen title").text_content().split(" (")[0]
    page.get_by_role("heading", level=2, name=chosen).wait_for()
    page.get_by_role("link", name="Steps").click()
    page.locator(".timeline").wait_for()
    assert page.locator(".timeline .step-link").all_text_contents() == names
    assert page.locator(".timeline .step-link[aria-current=true]").text_content() == chosen


def test_a_search_leads_to_sessions_and_tasks(dashboard, page):
    dashboard.enter(page)
    page.keyboard.press("/")
    page.keyboard.type("import")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Import invoices").click()
    page.get_by_role("complementary", name="Task").get_by_role("heading", name="Import invoices").wait_for()


def test_filters_stand_in_the_address(dashboard, page):
    dashboard.enter(page, "#/sessions")
    page.get_by_role("button", name="Aborted").click()
    dashboard.shows(page, "#/sessions?status=aborted")
    page.get_by_role("link", name="Compare our prices").wait_for()
    expect(page.locator(".item")).to_have_count(1)
    assert page.locator(".item").get_by_text("aborted", exact=True).is_visible()
    page.reload()
    dashboard.shows(page, "#/sessions?status=aborted")
    expect(page.locator(".item")).to_have_count(1)


def test_a_former_address_of_sessions_leads_to_what_it_showed(dashboard, addresses, page):
    """Bookmarks and messages call sessions runs, as the pages did before."""
    dashboard.enter(page)
    page.goto(f"{dashboard.url}{addresses['a session'].replace('sessions', 'runs')}")
    page.get_by_role("heading", name="Explain the growth of storage costs").wait_for()
    assert page.url.endswith(addresses["a session"])
    page.goto(f"{dashboard.url}#/runs?status=aborted")
    page.get_by_role("link", name="Compare our prices").wait_for()
    assert page.url.endswith("#/sessions?status=aborted")


def test_the_event_log_says_in_words_what_has_happened_and_who_did_it(dashboard, page):
    """The row of an event, and the panel that it opens."""
    dashboard.enter(page, "#/events?q=payments+failed")
    row = page.get_by_role("row").filter(has_text="Task failed").first
    assert [cell.strip() for cell in row.get_by_role("cell").all_inner_texts()[1:]] == [
        "Task failed",
        "Import payments",
        "Grace",
    ]
    row.get_by_role("link").click()
    panel = page.get_by_role("complementary", name="Event")
    panel.get_by_role("heading", name="Task failed").wait_for()
    panel.get_by_role("link", name="Grace").wait_for()


def test_the_page_of_reviews_without_rules_names_a_command_that_exists(dashboard, page):
    dashboard.enter(page, "#/reviews")
    page.get_by_text("No rules yet.").wait_for()
    command = page.locator(".empty code").inner_text()
    assert command.startswith("deepwork reviews ")
    checked = subprocess.run([sys.executable, "-m", *command.split(), "--help"], capture_output=True, check=False)
    assert checked.returncode == 0


def test_a_time_shows_the_exact_one_when_it_has_the_focus(dashboard, addresses, page):
    dashboard.enter(page, addresses["a session"])
    when = page.locator(".strip time").first
    when.focus()

    expect(when).to_be_focused()
    style = when.evaluate(
        "(element) => [getComputedStyle(element, '::after').display, getComputedStyle(element, '::after').content]"
    )
    assert style[0] == "block"
    assert "2" in style[1]


def test_the_theme_that_is_chosen_outlives_a_reload(dashboard, new_page):
    page = new_page(scheme="light")
    dashboard.enter(page)
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(ground)
    for _ in range(2):
        page.get_by_role("button", name="Theme").click()
    page.get_by_role("button", name="Theme: dark").wait_for()
    dark = page.evaluate(ground)
    page.reload()
    page.get_by_role("button", name="Theme: dark").wait_for()
    assert page.evaluate(ground) == dark != light
