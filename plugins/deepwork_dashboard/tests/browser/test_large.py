"""Two thousand tasks and long logs stay fluent: little is in the document, however much there is."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.slow

TASKS = 2000
ACROSS = 50
EVENTS = 450


@pytest.fixture(scope="module")
def large(make_team, new_task):
    """A plan of 40 layers of 50 tasks, and some hundred events."""
    team = make_team()
    tasks = []
    for number in range(TASKS):
        layer = number // ACROSS
        needs = [f"Task {(layer - 1) * ACROSS + (number * step) % ACROSS}" for step in (1, 7)] if layer else []
        tasks.append(new_task(f"Task {number}", *dict.fromkeys(needs), sequence=layer + 1))
    with team.agent("--tools", "orchestration") as agent:
        plan_id, ids = team.plan(agent, "A large plan", tasks)
        for number in range(EVENTS):
            agent.call("checkpoint_add", task_id=ids["Task 0"], type="progress", summary=f"Point {number}")
        yield team, plan_id, ids, agent


@pytest.fixture(scope="module")
def dashboard(large, serve):
    return serve(large[0].root)


def test_a_large_plan_is_shown_whole_and_near_with_few_elements(large, dashboard, page):
    _, plan_id, _, _ = large
    dashboard.enter(page, f"#/plans/{plan_id}")
    page.locator(".far").first.wait_for()
    assert page.locator(".world *").count() < 20
    for _ in range(14):
        page.get_by_role("button", name="Zoom in").click()
    page.locator(".node").first.wait_for()
    assert 0 < page.locator(".node").count() < 600
    page.get_by_role("button", name="Show all").click()
    page.locator(".node").first.wait_for(state="detached")


def test_a_large_plan_is_moved_within_frames(large, dashboard, page):
    """The middle of 60 moves takes no longer than the drawing of a few frames, measured against an empty one."""
    _, plan_id, _, _ = large
    dashboard.enter(page, f"#/plans/{plan_id}")
    page.locator(".far").first.wait_for()
    took = page.evaluate(
        """async () => {
        const graph = document.querySelector('plan-graph');
        const frame = () => new Promise((done) => requestAnimationFrame(done));
        const measure = async (act) => {
          const times = [];
          for (let turn = 0; turn < 60; turn += 1) {
            const start = performance.now();
            act(turn);
            await frame();
            times.push(performance.now() - start);
          }
          return times.sort((one, other) => one - other)[30];
        };
        const idle = await measure(() => {});
        const moved = await measure((turn) => graph.dispatchEvent(
          new WheelEvent('wheel', {deltaY: turn % 2 ? 60 : -60, clientX: 700, clientY: 600, cancelable: true})));
        return {idle, moved};
    }"""
    )
    assert took["moved"] <= 10 * took["idle"], took


def test_a_filter_of_a_large_plan_counts_what_fits_and_the_table_shows_it(large, dashboard, page):
    _, plan_id, _, _ = large
    dashboard.enter(page, f"#/plans/{plan_id}")
    page.get_by_label("Find tasks by name").fill(f"task {TASKS - 1}")
    page.get_by_text("1 task fits the filter").wait_for()
    page.get_by_role("link", name="Table").click()
    expect(page.locator(".vrow")).to_have_count(1)


def test_the_table_of_a_large_plan_has_all_rows_and_few_elements(large, dashboard, page):
    _, plan_id, _, _ = large
    dashboard.enter(page, f"#/plans/{plan_id}?tab=table")
    table = page.get_by_role("table", name="Tasks of the plan")
    table.wait_for()
    assert table.get_attribute("aria-rowcount") == str(TASKS + 1)
    assert page.locator(".vrow").count() < 60
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.get_by_text(f"Task {TASKS - 1}", exact=True).wait_for()
    assert page.locator(".vrow").count() < 60


def test_j_walks_on_through_rows_that_were_not_drawn_yet(large, dashboard, page):
    _, plan_id, _, _ = large
    dashboard.enter(page, f"#/plans/{plan_id}?tab=table")
    page.locator(".vrow").first.wait_for()
    for _ in range(70):
        page.keyboard.press("j")
    page.locator(".vrow[data-index='69']:is(:focus, :focus-within)").wait_for()
    page.keyboard.press("Enter")
    page.get_by_role("complementary", name="Task").wait_for()


def test_a_long_log_is_read_page_by_page_to_its_end(large, dashboard, page):
    dashboard.enter(page, "#/events?event=checkpoint")
    page.locator(".vrow").first.wait_for()
    page.get_by_text("read, older ones follow").wait_for()
    end = page.get_by_text(f"{EVENTS} events, that is all.")
    while not end.is_visible():
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        page.wait_for_timeout(200)
    assert page.locator(".vrow").count() < 70


def test_a_new_event_comes_to_the_head_of_a_long_log(large, dashboard, page):
    _, _, ids, agent = large
    dashboard.enter(page, "#/events?event=checkpoint")
    page.locator(".vrow").first.wait_for()
    before = page.locator("[data-index='0'] a").get_attribute("href")
    agent.call("checkpoint_add", task_id=ids["Task 1"], type="progress", summary="The newest")
    page.locator(f"[data-index='1'] a[href='{before}']").wait_for()


def test_the_layout_puts_every_task_right_of_what_it_needs_and_none_upon_another(large, dashboard, page):
    dashboard.enter(page)
    problems = page.evaluate(
        """async () => {
        const {layout, NODE} = await import('./static/js/graph/layout.js');
        const random = (() => { let seed = 7; return () => (seed = (seed * 16807) % 2147483647) / 2147483647; })();
        const wrong = [];
        for (let turn = 0; turn < 60; turn += 1) {
          const count = Math.floor(random() * 120);
          const edges = [];
          for (let node = 1; node < count; node += 1) {
            for (let edge = 0; edge < random() * 3; edge += 1) edges.push([Math.floor(random() * node), node]);
          }
          const {nodes, width, height} = layout(count, edges);
          const note = (isWrong, text) => isWrong && wrong.push(`${turn}: ${text}`);
          for (const [from, to] of edges) {
            note(nodes[from].x + NODE.width > nodes[to].x, `${from} is not left of ${to}`);
          }
          nodes.forEach((one, index) => nodes.slice(0, index).forEach((other, second) => {
            const isApart = Math.abs(one.x - other.x) >= NODE.width || Math.abs(one.y - other.y) >= NODE.height;
            note(!isApart, `${index} is upon ${second}`);
          }));
          nodes.forEach(({x, y}, index) => {
            note(x < 0 || y < 0 || x + NODE.width > width || y + NODE.height > height, `${index} is outside`);
          });
        }
        return wrong.slice(0, 5);
    }"""
    )
    assert problems == []
