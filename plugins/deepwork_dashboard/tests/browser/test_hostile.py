"""Agents write what they like, and other pages try what they can: none of it has an effect."""

from __future__ import annotations

import http.server
import threading
from functools import partial

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.slow

LONG = "Migrate_the_whole_pipeline_" * 7 + "and_so_on"
MARKUP = [
    "<script>window.hit = 1</script>",
    "<img src=x onerror='window.hit = 1'>",
    "<svg onload='window.hit = 1'><a href='javascript:window.hit=1'>x</a></svg>",
    "</title></p></div><iframe srcdoc='<script>parent.hit = 1</script>'></iframe>",
    "javascript:window.hit=1",
    "${window.hit = 1} {{window.hit = 1}} <!--?lit$000$--> \u202e",
]


# What stands out of the page to the right, if the page can be scrolled to it.
WIDER = """document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll('main *')]
    .filter((element) => element.getBoundingClientRect().right > innerWidth)
    .map((element) => `${element.tagName}.${element.className}`).slice(0, 9)"""
HANDLERS = """[...document.querySelectorAll('*')].flatMap((element) =>
    element.getAttributeNames().filter((name) => name.startsWith('on')))"""


@pytest.fixture(scope="module")
def hostile(make_team):
    """A project in which every name, text and path is an attack."""
    team = make_team()
    with team.agent("--tools", "core") as agent:
        for text in [*MARKUP, LONG]:
            team.start(agent, text, steps=1)
        stuck = team.start(agent, MARKUP[0], steps=1)
        team.fail_draft(agent, stuck)
        aborted = team.start(agent, MARKUP[1])
        agent.call("abort_workflow", explanation=" ".join(MARKUP), session_id=aborted)
    with team.agent("--tools", "orchestration") as agent:
        tasks = [
            {
                "name": f"{text[:190]} {number}",
                "description": " ".join(MARKUP),
                "sequence": 1,
                "parallel_group": text[:100],
            }
            for number, text in enumerate([*MARKUP, LONG])
        ]
        plan_id, ids = team.plan(agent, MARKUP[1], tasks)
        worker = team.register(agent, MARKUP[2])
        lead = team.register(agent, MARKUP[4], role="coordinator", workspace_path="/javascript:window.hit=1")
        first = next(iter(ids.values()))
        agent.call("task_claim", task_id=first, agent_id=worker)
        team.move(agent, first, "planning", "in_progress")
        agent.call(
            "checkpoint_add",
            task_id=first,
            type="progress",
            summary=MARKUP[1],
            files_changed=[MARKUP[4], MARKUP[0]],
            detail={MARKUP[0]: MARKUP[1]},
        )
        team.move(agent, first, "failed", error=" ".join(MARKUP))
        for body in (MARKUP[1], {MARKUP[0]: MARKUP[4]}):
            agent.call(
                "message_send",
                sender_id=worker,
                recipient_id=lead,
                message_type="query",
                subject=MARKUP[3],
                body=body,
                task_id=first,
            )
    with team.agent("--tools", "tracking") as agent:
        workflow = agent.call("start_workflow", name=MARKUP[1], objective=MARKUP[2])["workflow_id"]
        phase = agent.call("start_phase", workflow_id=workflow, number=1, name=MARKUP[0])["phase_id"]
        task = agent.call(
            "start_task",
            workflow_id=workflow,
            phase_id=phase,
            caller_type="subagent",
            agent_name=MARKUP[1],
            name=MARKUP[3],
            goal=MARKUP[4],
        )["task_id"]
        agent.call(
            "log_decision",
            task_id=task,
            category="other",
            question=MARKUP[0],
            chosen=MARKUP[1],
            reasoning=MARKUP[2],
            options_considered=MARKUP,
        )
        agent.call(
            "log_issue",
            task_id=task,
            type="other",
            description=MARKUP[1],
            resolution=MARKUP[4],
            requires_human_review=True,
        )
        agent.call("log_milestone", task_id=task, message=MARKUP[1], metadata={MARKUP[1]: MARKUP[4]})
    return team, plan_id, first, workflow, stuck


def test_markup_of_agents_stays_text_on_every_view(hostile, serve, new_page):
    """It is read as it was written, and nothing in it runs, loads or leads anywhere."""
    team, plan_id, task_id, workflow, stuck = hostile
    dashboard = serve(team.root)
    page = new_page()
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("dialog", lambda dialog: requests.append("dialog"))
    dashboard.enter(page)
    views = [
        "#/inbox",
        "#/overview",
        "#/sessions",
        f"#/sessions/{stuck}",
        f"#/sessions/{stuck}?tab=history",
        f"#/sessions/{stuck}?tab=about",
        "#/plans",
        f"#/plans/{plan_id}?task={task_id}",
        f"#/plans/{plan_id}?tab=table",
        f"#/plans/{plan_id}?tab=messages",
        f"#/plans/{plan_id}?tab=about",
        "#/work",
        f"#/work/{workflow}",
        f"#/work/{workflow}?tab=decisions",
        f"#/work/{workflow}?tab=issues",
        f"#/work/{workflow}?tab=milestones",
        "#/agents",
        "#/messages",
        "#/events",
        "#/search?q=window.hit",
        f"#/inbox/{MARKUP[0]}",
        f"#/sessions?q={MARKUP[1]}",
    ]
    for view in views:
        dashboard.open(page, view)
        page.locator(".loading").first.wait_for(state="detached")
        page.eval_on_selector_all("main details", "(parts) => parts.forEach((part) => { part.open = true; })")
        assert page.evaluate("window.hit") is None, view
        expect(page.locator("main script, main iframe, main img, main object, main embed")).to_have_count(0)
        addresses = page.eval_on_selector_all("a", "(links) => links.map((link) => link.getAttribute('href'))")
        assert [address for address in addresses if not address.startswith("#/")] == [], view
        assert page.evaluate(HANDLERS) == [], view
        assert page.evaluate(WIDER) == [], view
    assert [url for url in requests if not url.startswith(dashboard.url)] == []
    page.get_by_text(MARKUP[1], exact=False).first.wait_for()


def test_names_without_a_space_never_make_a_page_wider(hostile, serve, new_page):
    team, plan_id, task_id, workflow, _ = hostile
    dashboard = serve(team.root)
    page = new_page(width=360, height=740)
    dashboard.enter(page)
    for view in [
        "#/inbox",
        "#/overview",
        "#/sessions",
        f"#/plans/{plan_id}?task={task_id}",
        f"#/plans/{plan_id}?tab=table",
        f"#/work/{workflow}",
        "#/agents",
        "#/messages",
        "#/events",
    ]:
        dashboard.open(page, view)
        page.locator(".loading").first.wait_for(state="detached")
        assert page.evaluate(WIDER) == [], view


@pytest.fixture
def other_site(tmp_path):
    """A foreign page, on another port of this machine."""
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield tmp_path, f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def test_another_site_can_neither_read_nor_answer_nor_frame_nor_listen(make_team, serve, page, other_site):
    """Somebody who is logged in opens a hostile page: its requests have no effect."""
    team = make_team()
    with team.agent("--tools", "core") as agent:
        stuck = team.start(agent, "Report of May", steps=1)
        team.fail_draft(agent, stuck)
    dashboard = serve(team.root)
    dashboard.enter(page)
    page.get_by_role("article").wait_for()
    item_id = page.evaluate("fetch('api/inbox').then((response) => response.json()).then(({items}) => items[0].id)")

    folder, address = other_site
    (folder / "index.html").write_text("<title>hostile</title>")
    hostile = page.context.new_page()
    hostile.goto(address)
    got = hostile.evaluate(
        """async ([base, id]) => {
        const body = JSON.stringify({id, action: 'abort', text: 'because'});
        const post = {method: 'POST', credentials: 'include', body};
        const tries = {
          read: () => fetch(base + 'api/inbox', {credentials: 'include'}).then((response) => response.text()),
          post: () => fetch(base + 'api/inbox/answer', {...post, headers: {'Content-Type': 'application/json'}})
            .then((response) => response.text()),
          simple: () => fetch(base + 'api/inbox/answer', {...post, mode: 'no-cors'})
            .then(() => { throw new Error('what it did is looked at below'); }),
          listen: () => new Promise((done, fail) => {
            const socket = new WebSocket(base.replace('http', 'ws') + 'live');
            socket.onmessage = done;
            socket.onerror = () => fail(new Error('refused'));
          }),
          script: () => new Promise((done, fail) => {
            const script = document.createElement('script');
            script.src = base + 'api/session';
            script.onload = done;
            script.onerror = () => fail(new Error('refused'));
            document.head.append(script);
          }),
        };
        const got = {};
        for (const [name, attempt] of Object.entries(tries)) {
          got[name] = await attempt().then(() => 'SUCCEEDED', () => 'refused');
        }
        const frame = document.createElement('iframe');
        frame.src = base;
        document.body.append(frame);
        await new Promise((done) => { frame.onload = done; setTimeout(done, 3000); });
        return got;
    }""",
        [dashboard.url, item_id],
    )
    assert got == dict.fromkeys(["read", "post", "simple", "listen", "script"], "refused")
    assert all(
        "login" not in frame.content() and "deepwork" not in frame.content().lower() for frame in hostile.frames[1:]
    )
    page.reload()
    page.get_by_role("article").filter(has_text="Report of May").wait_for()
