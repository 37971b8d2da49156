"""A person reviews a piece of work on its page, at the very line, and nothing that they write is lost."""

from __future__ import annotations

import json
from urllib.error import URLError

import browsing
import pytest
import reviewed as stories
from playwright.sync_api import expect

pytestmark = pytest.mark.slow

SMALL = 360
# Wait until the server has no draft of a session any more.
DROPPED = """async (session) => {
    for (let turn = 0; turn < 300; turn += 1) {
        const {draft} = await fetch(`api/sessions/${session}/steps/plan`).then((response) => response.json());
        if (draft === null) return;
        await new Promise((done) => setTimeout(done, 100));
    }
    throw new Error('the server still has the draft');
}"""
SCROLLED = "async () => { scrollTo(0, document.body.scrollHeight); await new Promise(requestAnimationFrame); }"


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A project whose step `plan` a person reviews."""
    return stories.Reviewed(tmp_path_factory.mktemp("shop") / "shop")


@pytest.fixture(scope="module")
def dashboard(shop, serve):
    return serve(shop.root)


@pytest.fixture(scope="module")
def agent(shop):
    with shop.agent() as agent:
        yield agent


@pytest.fixture
def session(shop, agent):
    """A session whose first attempt waits for a person."""
    session_id = shop.begin(agent)
    shop.report(agent, session_id, stories.files())
    return session_id


def address(session, query=""):
    return f"#/sessions/{session}/steps/plan{query}"


def card(page, path):
    return page.get_by_role("region", name=path, exact=True)


def go_to_line(page, text):
    """Press j until the line with this text has the focus."""
    for _ in range(80):
        page.keyboard.press("j")
        if text in page.evaluate("document.activeElement.textContent"):
            return
    raise AssertionError(text)


def comment_on_plan(page, text="Say more."):
    """Open the editor on the second step of the plan, and write."""
    card(page, "plan.md").get_by_role("button", name="Rendered").click()
    card(page, "plan.md").locator("code").first.wait_for()
    card(page, "plan.md").locator(".line[data-line='9']:not(.is-block) .new").click()
    page.get_by_role("textbox", name="Comment").fill(text)


def saved(page):
    """Wait until the server has the draft: until then the browser keeps it, from the first letter on."""
    while page.evaluate("Object.keys(localStorage).some((key) => key.startsWith('deepwork.draft '))"):
        page.wait_for_timeout(50)
    page.get_by_text("Draft saved.").wait_for()


def test_a_person_reviews_two_attempts_with_the_keys_alone(shop, agent, session, dashboard, page):
    """From the inbox to the line, a comment and a replacement; the agent gets both, and what it changed is seen."""
    dashboard.enter(page)
    page.get_by_role("link", name="waits for your review").first.press("Enter")
    page.get_by_role("heading", level=1, name="Plan the new checkout").wait_for()
    page.locator(".line").first.wait_for()
    dashboard.shows(page, address(session))

    go_to_line(page, "Compute delivery")
    page.keyboard.press("c")
    page.get_by_role("textbox", name="Comment").wait_for()
    page.keyboard.type("And if that is down?")
    page.keyboard.press("Control+Enter")
    page.get_by_role("article", name="Your comment on line 9").wait_for()
    page.locator(".line:focus").wait_for()

    go_to_line(page, "def delivery")
    for _ in range(3):
        page.keyboard.press("Shift+J")
    page.keyboard.press("s")
    replacement = page.get_by_role("textbox", name="Replacement")
    expect(replacement).to_have_value("\n".join(stories.CART.split("\n")[15:19]))
    replacement.fill("        return PRICES.delivery(country)")
    replacement.press("Control+Enter")
    page.get_by_role("group", name="Suggested replacement").get_by_text("return PRICES").wait_for()

    page.keyboard.press("d")
    page.keyboard.type("Close.")
    saved(page)
    page.get_by_role("button", name="Request changes").press("Enter")
    page.get_by_role("status").filter(has_text="needs the changes").first.wait_for()
    page.get_by_text("not sent yet").first.wait_for(state="detached")
    page.evaluate(DROPPED, session)

    comments = shop.report(agent, session, stories.files())["comments"]
    assert [(comment["file"], comment["line"], comment["must"]) for comment in comments] == [
        ("plan.md", 9, True),
        ("src/cart.py", 16, True),
    ]
    assert "+        return PRICES.delivery(country)" in comments[1]["suggestion"]
    shop.report(agent, session, stories.files(**stories.SECOND), "c1: It shows the highest price.")

    page.locator(".attempt-tabs").get_by_text("Attempt 2").wait_for()
    card(page, "plan.md").get_by_text("It shows the highest price.").wait_for()
    expect(card(page, "plan.md").get_by_text("changed since")).to_have_count(1)
    resolve = page.get_by_role("button", name="Resolve")
    for open_threads in (1, 0):
        resolve.first.press("Enter")
        expect(resolve).to_have_count(open_threads)
    page.get_by_role("button", name="Pass", exact=True).press("Enter")
    page.get_by_role("status").filter(has_text="passes").first.wait_for()
    assert shop.report(agent, session, stories.files(**stories.SECOND))["status"] == "next_step"
    page.locator(".attempt-tabs").get_by_text("passed").wait_for()
    expect(page.get_by_role("region", name="Your decision")).to_have_count(0)


def test_the_address_that_an_agent_is_told_leads_to_the_work_also_through_the_login(shop, agent, dashboard, page):
    page.goto(dashboard.url)
    session_id = shop.begin(agent)
    where = shop.report(agent, session_id, stories.files())["waits_for"]["where"]
    assert where.endswith(f"/#/inbox/sessions:{session_id}.plan")
    page.goto("about:blank")
    page.goto(where)
    page.get_by_label("Or paste the token").fill(dashboard.TOKEN)
    page.get_by_role("button", name="Log in").click()
    dashboard.shows(page, address(session_id))
    page.go_back()
    assert page.url == "about:blank"


def test_a_draft_outlives_a_reload_and_a_server_that_was_killed(session, shop, serve, page):
    dashboard = serve(shop.root)
    dashboard.enter(page, address(session))
    comment_on_plan(page, "One")
    page.keyboard.press("Control+Enter")
    page.locator(".line[data-line='12'] .new").first.click()
    page.get_by_role("textbox", name="Comment").fill("Half a sent")
    saved(page)
    page.reload()
    page.get_by_role("article", name="Your comment on line 9").wait_for()
    expect(page.get_by_role("textbox", name="Comment")).to_have_value("Half a sent")

    dashboard.kill()
    page.get_by_role("textbox", name="Comment").fill("Half a sentence")
    page.get_by_text("Not saved on the server yet").wait_for()
    dashboard.start()
    dashboard.enter_again(page)
    saved(page)
    page.evaluate("localStorage.clear()")
    page.reload()
    expect(page.get_by_role("textbox", name="Comment")).to_have_value("Half a sentence")


def test_a_page_that_died_after_it_had_sent_its_draft_does_not_send_it_again(shop, session, serve, page):
    dashboard = serve(shop.root)
    dashboard.enter(page, address(session))
    comment_on_plan(page, "Once")
    page.keyboard.press("Control+Enter")
    page.get_by_role("textbox", name="What you say to all of it").fill("All of it")
    saved(page)
    comment = {"file": "plan.md", "line": 9, "end_line": 9, "text": "Once", "must": True}
    shop.decide(session, "changes", "All of it", [comment])
    page.reload()
    card(page, "plan.md").get_by_role("article", name="Comment on line 9").wait_for()
    expect(page.get_by_text("not sent yet")).to_have_count(0)
    expect(page.get_by_text("kept as a draft")).to_have_count(0)
    assert page.evaluate("localStorage.length") == 0


def test_what_the_server_never_got_is_kept_by_the_browser(session, dashboard, page):
    dashboard.enter(page, address(session))
    page.route("**/draft", lambda route: route.abort())
    comment_on_plan(page, "Nobody got this")
    page.get_by_text("Not saved on the server yet").wait_for()
    page.unroute("**/draft")
    page.reload()
    expect(page.get_by_role("textbox", name="Comment")).to_have_value("Nobody got this")
    saved(page)


def test_a_draft_stays_on_its_attempt_when_the_agent_reports_again(shop, agent, session, dashboard, page):
    dashboard.enter(page, address(session))
    page.locator(".line").first.wait_for()
    comment_on_plan(page, "About the old line")
    page.keyboard.press("Control+Enter")
    page.locator(".line[data-line='12'] .new").first.click()
    page.get_by_role("textbox", name="Comment").fill("About the risks")
    page.get_by_role("button", name="Suggest a replacement").click()  # and none is written
    saved(page)
    shop.report(agent, session, stories.files(**stories.SECOND))
    page.get_by_text("Attempt 2 is here.").wait_for()
    expect(page.get_by_role("textbox", name="Comment")).to_have_value("About the risks")
    assert page.get_by_role("button", name="Request changes").is_disabled()
    expect(page.get_by_text("There is an attempt 2.")).to_be_in_viewport()  # people scroll to write

    page.get_by_role("link", name="Only look at it").click()
    page.get_by_text("You have a draft on attempt 1.").wait_for()
    page.get_by_role("link", name="Show it").click()
    page.get_by_role("button", name="Take my draft along to attempt 2").click()
    page.get_by_role("article", name="Your comment on line 12").wait_for()
    assert page.get_by_role("group", name="Suggested replacement").count() == 0
    expect(page.get_by_role("textbox", name="What you say to all of it")).to_have_value("plan.md: About the old line")
    expect(page.get_by_text("is here.")).to_have_count(0)
    assert page.get_by_role("button", name="Request changes").is_enabled()


def test_who_comes_second_reads_what_was_decided_and_keeps_the_draft(shop, session, dashboard, page):
    dashboard.enter(page, address(session))
    comment_on_plan(page)
    page.keyboard.press("Control+Enter")
    saved(page)
    page.route("**/live", lambda route: route.abort())
    page.route("**/steps/plan", lambda route: route.abort())  # the page does not hear of it before it sends
    shop.decide(session, "pass", "It is what we wanted.", who="ben")
    page.unroute("**/steps/plan")
    page.evaluate("document.querySelector('.decision .primary').click()")
    alert = page.get_by_role("alert")
    alert.get_by_text("has changed since you saw it").wait_for()
    alert.get_by_text("has passed it: It is what we wanted.").wait_for()
    alert.get_by_text("kept as a draft").wait_for()
    page.get_by_role("article", name="Your comment on line 9").wait_for()


def test_who_hears_that_another_has_decided_still_reads_their_own_words(shop, session, dashboard, page):
    dashboard.enter(page, address(session))
    page.get_by_role("textbox", name="What you say to all of it").fill("I am not sure")
    saved(page)
    shop.decide(session, "changes", "Shorter, please.", who="ben")
    alert = page.get_by_role("alert")
    alert.get_by_text("has requested changes: Shorter, please.").wait_for()
    alert.get_by_text("kept as a draft").wait_for()
    page.get_by_text("I am not sure").wait_for()


def test_two_people_with_one_login_keep_their_drafts(session, dashboard, new_page):
    pages = {words: new_page() for words in ("Shorter", "Longer")}
    for page in pages.values():
        dashboard.enter(page, address(session))
        page.locator(".line").first.wait_for()
    for words, page in pages.items():
        page.get_by_role("textbox", name="What you say to all of it").fill(words)
        page.get_by_text("Draft saved." if words == "Shorter" else "this browser keeps it").wait_for()
    for words, page in pages.items():
        page.reload()
        expect(page.get_by_role("textbox", name="What you say to all of it")).to_have_value(words)


PAYLOADS = [
    "<script>window.hit = 1</script>",
    "<img src=x onerror='window.hit = 1'>",
    "<svg onload='window.hit = 1'><a href='javascript:window.hit=1'>x</a></svg>",
    "[x](javascript:window.hit=1)",
    "![y](http://127.0.0.1:9/y.png)",
    "<http://127.0.0.1:9/>",
    "${window.hit = 1} {{window.hit = 1}} <!--?lit$000$-->",
    "\x1b]8;;http://127.0.0.1:9/\x1b\\click\x1b]8;;\x1b\\ \x1b[2J",
    "access = 'user\u202e \u2066// check\u2069 \u2066'\u200b\ufeff",
    "</title></p></div></template><iframe srcdoc='<script>parent.hit = 1</script>'></iframe>",
    "<details open ontoggle='window.hit = 1'>",
    "<style>*{display:none}</style><link rel=stylesheet href=http://127.0.0.1:9/a.css>",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'><base href=http://127.0.0.1:9/>",
    "data:text/html,<script>window.hit=1</script>",
    "<input autofocus onfocus='window.hit = 1'><button popovertarget=x>",
]
WRAPPED = ["{}", "# {}", "> {}", "- {}", "1. {}", "`{}`", "**{}**", "[{0}]({0})", "![{0}]({0})", "<{}>", "    {}"]
WRAPPED += [
    "```\n{}\n```",
    "|{}|\n|-|\n|{}|",
    "[a]: {0}\n[a]",
    "<div>\n{}\n</div>",
    "&lt;{}",
    "\\{}",
    "~~{}~~",
    "{}\r",
    "*{}",
]
HOSTILE = [wrapped.format(payload, payload) for payload in PAYLOADS for wrapped in WRAPPED]


def test_contents_and_comments_have_no_effect_and_what_is_unseen_is_shown(shop, agent, dashboard, new_page):
    """Every kind of content, as lines and rendered, in files, paths, comments and what the agent answers."""
    session = shop.begin(agent, PAYLOADS[0])
    assert len(HOSTILE) == 300
    text = "\n\n".join(HOSTILE)
    files = {
        "plan.md": text,
        "a.csv": "".join(f'"{line}",{line}\n' for line in HOSTILE),
        "b.json": json.dumps([{line: line} for line in HOSTILE]),
        "c.svg": PAYLOADS[2],
        "d.html": f"<!doctype html>{text}",
        "e'\"<b>f<i>.txt": text,
        "evil\u202egnp.txt": text,
        "g.png": PAYLOADS[2],
    }
    shop.report(agent, session, files)
    comments = [
        {"file": "plan.md", "line": number * 2 + 1, "text": line, "must": True, "suggestion": line}
        for number, line in enumerate(PAYLOADS)
    ]
    shop.decide(session, "changes", PAYLOADS[1], comments)
    shop.report(
        agent,
        session,
        {**files, "plan.md": f"First\n{text}"},
        "\n".join(f"c{n}: {line}" for n, line in enumerate(PAYLOADS, 1)),
    )
    page = new_page()
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("dialog", lambda dialog: requests.append("dialog"))
    dashboard.enter(page)
    for query in ("", "?attempt=1&against=none", "?against=none"):
        dashboard.open(page, address(session, query))
        page.locator(".file-card").first.wait_for()
        for turn in range(2):
            for button in page.locator("[data-rendered]").all():
                button.click()
            page.evaluate(SCROLLED)
            assert page.evaluate("window.hit") is None, (query, turn)
            inside = "main script, main iframe, main object, main embed, main style, main a:not([href^='#/'])"
            expect(page.locator(inside)).to_have_count(0)
            assert (
                page.evaluate("[...document.images].filter((image) => !image.src.startsWith('data:image/')).length")
                == 0
            )
    assert [url for url in requests if not url.startswith((dashboard.url, "data:image/png"))] == []
    dashboard.open(page, address(session, "?against=none"))
    page.locator(".unseen", has_text="U+202E").first.wait_for()
    expect(page.locator(".file-name .unseen")).to_have_count(1)


@pytest.mark.external
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_a_piece_of_work(shop, agent, session, dashboard, new_page, scheme):
    """With comments in every state, and while one is written; large and small."""
    try:
        axe = browsing.axe()
    except URLError as error:
        pytest.skip(f"AXE IS NOT HERE: {error}")
    shop.decide(session, "changes", "Close.", stories.COMMENTS)
    shop.report(agent, session, stories.files(**stories.SECOND), "c1: Done.\nc2: Done.\nc3: No.")
    violations_by_view = {}
    for width in (1280, SMALL):
        page = new_page(scheme=scheme, width=width, bypass_csp=True)
        dashboard.enter(page)
        page.evaluate(axe)
        for query in ("", "?attempt=1", "?against=none"):
            dashboard.open(page, address(session, query))
            page.locator(".line").first.wait_for()
            browsing.settle(page)
            if violations := browsing.violations(page):
                violations_by_view[query, width] = violations
        page.locator(".line[data-line='6'] .new").first.click()
        page.get_by_role("button", name="Suggest a replacement").click()
        page.get_by_role("textbox", name="Replacement").wait_for()
        browsing.settle(page)
        if violations := browsing.violations(page):
            violations_by_view["writing", width] = violations
        page.get_by_role("button", name="Cancel").click()
        saved_or_none = page.get_by_text("No comments yet")
        saved_or_none.wait_for()
    assert violations_by_view == {}


def test_a_piece_is_no_wider_than_a_small_screen(shop, agent, dashboard, new_page):
    session = shop.begin(agent, "Wide_" * 60)
    wide = {"plan.md": stories.PLAN + "x" * 3000 + "\n", "a" * 120 + ".py": "y" * 900 + "\n"}
    shop.report(agent, session, wide)
    shop.decide(session, "changes", "z" * 500, [{"file": "plan.md", "line": 1, "text": "w" * 400, "must": False}])
    shop.report(agent, session, {**wide, "plan.md": stories.PLAN + "v" * 3000 + "\n"})
    page = new_page(width=SMALL, height=740)
    dashboard.enter(page)
    for query in ("", "?against=none", "?attempt=1"):
        dashboard.open(page, address(session, query))
        page.locator(".line").first.wait_for()
        page.get_by_text("Reviewers").click()
        browsing.settle(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= SMALL, query


def test_what_has_several_lines_is_shown_in_lines(shop, agent, session, dashboard, page):
    words = {"file": "src/cart.py", "line": 17, "end_line": 19, "text": "First.\nSecond.", "must": True}
    shop.decide(session, "changes", None, [words])
    shop.report(agent, session, stories.files(**stories.SECOND), "c1: It is there now.")
    dashboard.enter(page, address(session))
    comment = card(page, "src/cart.py").get_by_role("article").filter(has_text="First.")
    comment.get_by_text("Second.").wait_for()
    comment.get_by_text('return Decimal("12.90")').wait_for()
    assert "First.\nSecond." in comment.inner_text()
    page.get_by_text("Inputs").click()
    page.get_by_role("button", name="notes.md").click()
    page.get_by_text("31 leave at the second page").wait_for()
    expect(page.get_by_text("U+000A")).to_have_count(0)


def test_while_somebody_writes_on_a_small_screen_the_decision_leaves_them_room(session, dashboard, new_page):
    page = new_page(width=SMALL, height=740)
    dashboard.enter(page, address(session))
    page.locator(".line[data-line='6'] .new").first.click()
    page.get_by_role("textbox", name="Comment").wait_for()
    page.get_by_text("Add the comment that you are writing").wait_for()
    decision = page.get_by_role("region", name="Your decision")
    expect(decision.get_by_role("button", name="Pass")).to_have_count(0)
    page.get_by_role("button", name="Cancel").click()
    decision.get_by_role("button", name="Pass").wait_for()


def test_of_many_long_files_little_is_in_the_document(shop, agent, dashboard, page):
    session = shop.begin(agent, "Many files")
    first = {f"part/{number:02}.py": "".join(f"line {n}\n" for n in range(300)) for number in range(40)}
    shop.report(agent, session, {"plan.md": stories.PLAN, **first})
    shop.decide(session, "changes", "More.")
    second = {path: text.replace("5\n", "5 has changed\n") for path, text in first.items()}
    shop.report(agent, session, {"plan.md": stories.PLAN, **second})
    dashboard.enter(page, address(session))
    page.locator(".line").first.wait_for()
    expect(page.locator(".file-card")).to_have_count(41)
    assert page.locator(".line").count() < 400
    page.get_by_role("button", name="39.py").first.click()
    last = card(page, "part/39.py")
    last.get_by_text("line 5 has changed").wait_for()
    assert page.locator(".line").count() < 400
    page.keyboard.press("j")
    page.keyboard.press("n")
    page.keyboard.press("c")
    page.get_by_role("textbox", name="Comment").wait_for()
    expect(last.get_by_role("form", name="New comment")).to_have_count(1)


def test_secrets_are_shown_once_somebody_asks(session, dashboard, page):
    dashboard.enter(page, address(session))
    secret = card(page, "deploy.env")
    secret.get_by_text("looks as if it held secrets").wait_for()
    expect(page.get_by_text("an-invented-key")).to_have_count(0)
    secret.get_by_role("button", name="Show it").click()
    secret.get_by_text("an-invented-key").wait_for()
