"""Pages follow what agents do in other processes, also over lost connections, and nothing is missed."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def team(make_team):
    return make_team()


@pytest.fixture(scope="module")
def agent(team):
    with team.agent("--tools", "core") as agent:
        yield agent


@pytest.fixture(scope="module")
def planner(team):
    with team.agent("--tools", "orchestration") as agent:
        yield agent


def mark(page):
    """Note that this is the same document, so that a reload would be seen."""
    page.evaluate("window.isTheSamePage = true")


def is_same(page):
    return page.evaluate("window.isTheSamePage === true")


def test_a_session_of_another_process_appears_and_moves_on(team, agent, serve, page):
    dashboard = serve(team.root)
    dashboard.enter(page, "#/sessions")
    mark(page)
    session_id = team.start(agent, "A session that begins while somebody looks")
    page.get_by_role("link", name="A session that begins while somebody looks").click()
    page.get_by_role("heading", name="Gather figures").wait_for()
    team.finish(agent, session_id, 0)
    page.get_by_role("heading", name="Draft the report").wait_for()
    assert is_same(page)


def test_what_waits_is_counted_at_once_on_every_view(team, agent, serve, page):
    dashboard = serve(team.root)
    dashboard.enter(page, "#/plans")
    before = page.locator(".badge").all_inner_texts()
    session_id = team.start(agent, "A session that gets stuck", steps=1)
    team.fail_draft(agent, session_id)
    after = int(before[0] if before else 0) + 1
    page.locator(".badge", has_text=str(after)).wait_for()
    assert page.title().startswith(f"({after}) Plans")


def test_tasks_change_their_colour_while_somebody_looks(team, planner, new_task, serve, page):
    plan_id, tasks = team.plan(planner, "A plan", [new_task("First"), new_task("Second", "First", sequence=2)])
    worker = team.register(planner, "Ada")
    dashboard = serve(team.root)
    dashboard.enter(page, f"#/plans/{plan_id}")
    page.locator(".node-blocked", has_text="Second").wait_for()
    planner.call("task_claim", task_id=tasks["First"], agent_id=worker)
    team.move(planner, tasks["First"], "planning", "in_progress")
    page.locator(".node-in_progress", has_text="First").wait_for()
    team.move(planner, tasks["First"], "completed")
    page.locator(".node-completed", has_text="First").wait_for()
    page.locator(".node-pending", has_text="Second").wait_for()


def test_a_server_that_is_killed_and_started_again_loses_nothing(team, agent, serve, page):
    """The page says that it is stale, and shows what happened meanwhile, without a reload."""
    session_id = team.start(agent, "A session that goes on without the server")
    dashboard = serve(team.root)
    dashboard.enter(page, f"#/sessions/{session_id}")
    page.get_by_text("Live", exact=True).wait_for()
    mark(page)
    dashboard.kill()
    page.get_by_text("Not connected since").wait_for()
    page.get_by_role("heading", name="Gather figures").wait_for()

    team.finish(agent, session_id, 0)
    dashboard.start()
    dashboard.enter_again(page)
    page.get_by_role("heading", name="Draft the report").wait_for()
    page.get_by_text("Live", exact=True).wait_for()
    expect(page.get_by_text("Not connected since")).to_have_count(0)
    assert is_same(page)


def test_every_event_of_an_outage_is_in_the_log_once(team, planner, new_task, serve, page):
    dashboard = serve(team.root)
    dashboard.enter(page, "#/events?source=orchestration")
    page.locator(".vrow").first.wait_for()
    dashboard.kill()
    page.get_by_text("Not connected since").wait_for()
    for number in range(30):
        team.plan(planner, f"Plan {number} of the outage", [new_task("Only")])
    dashboard.start()
    dashboard.enter_again(page)
    page.get_by_text("Live", exact=True).wait_for()
    page.get_by_text("Plan 29 of the outage").first.wait_for()
    page.get_by_label("Filter by event or text").fill("workflow:created outage")
    page.wait_for_url("**q=workflow**")
    page.get_by_text("30 events, that is all.").wait_for()


def test_a_page_without_network_says_so_and_comes_back(team, agent, serve, page):
    """As when a laptop is closed and opened: the browser tells the page that it is online again."""
    session_id = team.start(agent, "A session on a train")
    dashboard = serve(team.root)
    dashboard.enter(page, f"#/sessions/{session_id}")
    page.get_by_text("Live", exact=True).wait_for()
    mark(page)
    dashboard.kill()
    # Chromium may keep a socket that was open before it went offline, so the server's end comes first.
    page.get_by_text("Not connected since").wait_for()
    page.context.set_offline(True)
    team.finish(agent, session_id, 0)
    dashboard.start()
    page.context.set_offline(False)
    dashboard.enter_again(page)
    page.get_by_role("heading", name="Draft the report").wait_for()
    assert is_same(page)


def test_a_login_that_has_ended_says_how_to_come_back_and_the_view_is_still_there(team, agent, serve, page):
    session_id = team.start(agent, "A session whose watcher is logged out")
    dashboard = serve(team.root)
    dashboard.enter(page, f"#/sessions/{session_id}")
    dashboard.kill()
    dashboard.token_file.write_text("local another-token-0123456789abcdef person\n")
    dashboard.start()
    page.get_by_role("heading", name="Your login has ended").wait_for()
    page.get_by_text("deepwork dashboard --open").wait_for()

    page.get_by_label("Or paste the token").fill(f"{dashboard.url}#token=another-token-0123456789abcdef")
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("heading", name="A session whose watcher is logged out").wait_for()
    page.get_by_text("Live", exact=True).wait_for()


def test_a_wrong_token_is_refused_in_words(team, serve, page):
    dashboard = serve(team.root)
    page.goto(f"{dashboard.url}#token=wrong")
    page.get_by_role("alert").wait_for()
    assert "token" not in page.url
    assert page.get_by_role("alert").inner_text()


def test_pages_of_a_server_over_http_are_live_too(team, agent, serve, page):
    dashboard = serve(team.root, command=("serve", "--transport", "http"), mount="/plugins/dashboard/")
    dashboard.enter(page, "#/sessions")
    team.start(agent, "A session beside a server over HTTP")
    page.get_by_role("link", name="A session beside a server over HTTP").wait_for()


def test_a_link_with_somebody_elses_token_does_not_take_the_place_of_the_login(team, serve, page):
    dashboard = serve(team.root)
    dashboard.kill()
    dashboard.token_file.write_text(f"ann {dashboard.TOKEN} person\nmallory mallorys-token-for-tests person\n")
    dashboard.start()
    dashboard.enter(page)
    for _ in range(2):
        page.goto(f"{dashboard.url}#token=mallorys-token-for-tests")
        page.get_by_text("· ann").wait_for()
        assert "token" not in page.url
        page.goto("about:blank")


def test_who_logs_out_is_logged_out_and_logs_in_again(team, serve, page):
    dashboard = serve(team.root)
    dashboard.enter(page)
    page.get_by_role("button", name="Log out").click()
    page.get_by_role("heading", name="Log in").wait_for()
    page.reload()
    page.get_by_role("heading", name="Log in").wait_for()
    dashboard.enter(page)


def test_the_file_that_is_opened_in_the_browser_logs_in(team, page, tmp_path):
    opened = tmp_path / "opened"
    script = tmp_path / "browser"
    script.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.part && mv {opened}.part {opened}\n')
    script.chmod(0o700)
    command = [sys.executable, "-m", "deepwork", "dashboard", "--open", "--port", "0", "--path", str(team.root)]
    environment = {**os.environ, "BROWSER": f"{script} %s"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert b"#token" not in process.stdout.readline()
            while not opened.exists():
                assert process.poll() is None
                time.sleep(0.02)
            page.goto(opened.read_text())
            page.get_by_role("heading", level=1, name="Inbox").wait_for()
            assert "token" not in page.url
        finally:
            process.terminate()
