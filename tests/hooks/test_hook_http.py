from __future__ import annotations

import anyio
import pytest
from starlette.testclient import TestClient

from deepwork import api
from deepwork.api import HttpApp
from deepwork.builtin.http.guard import Guard
from deepwork.builtin.http.limits import RequestLimits
from deepwork.builtin.http.plugins import PluginApps
from deepwork.builtin.http.tokens import Owner, Tokens
from deepwork.errors import PluginLoadError, StorageError, UnknownName
from deepwork.ports.records import ServedApp
from deepwork.project.stores import open_store
from deepwork.server.apps import serve_apps


class Greeter:
    """Serves what it is asked for, and counts how often its application is made."""

    def __init__(self, text="hello"):
        self.text = text
        self.made = 0

    def app(self):
        self.made += 1
        return self.serve

    async def serve(self, scope, receive, send):
        body = f"{self.text} {scope['path']} {scope['root_path']}".encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})


@pytest.fixture
def provided():
    def provided(name, *apps):
        return [ServedApp(name, f"deepwork-{name} 1", HttpApp(app=app)) for app in apps]

    return provided


@pytest.fixture
def client():
    return lambda apps: TestClient(PluginApps(apps))


def test_an_application_is_made_at_its_first_request_and_mounted_under_its_plugin(provided, client):
    greeter = Greeter()
    web = client(provided("acme", greeter.app))
    assert greeter.made == 0
    assert web.get("/plugins/acme/a/b").text == "hello /plugins/acme/a/b /plugins/acme"
    assert web.get("/plugins/acme/").status_code == 200
    assert greeter.made == 1


def test_a_path_of_no_plugin_is_not_found(provided, client):
    web = client(provided("acme", Greeter().app))
    assert web.get("/plugins/other/").status_code == 404


def test_an_application_that_cannot_be_made_is_an_error_of_its_plugin_alone(provided, client):
    def broken():
        raise LookupError

    web = client([*provided("bad", broken), *provided("acme", Greeter().app)])
    assert web.get("/plugins/bad/").status_code == 500
    assert web.get("/plugins/acme/").status_code == 200


def test_a_plugin_has_one_application(provided):
    with pytest.raises(PluginLoadError, match="more than one HttpApp"):
        PluginApps(provided("acme", Greeter().app, Greeter().app))


class Pages:
    """Serves pages, and says who asks for anything else."""

    async def serve(self, scope, receive, send):
        user, state = getattr(scope.get("user"), "username", None), scope.get("state", {})
        body = f"{user} {sorted(state)}".encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-csrf", _csrf(state))]})
        await send({"type": "http.response.body", "body": body})


def _csrf(state):
    return state.get("csrf_token", "").encode()


@pytest.fixture
def pages():
    """Make a browser of a server in which `acme` has pages, and `plain` has none."""

    def pages(tokens=None, **options):
        offers = [
            ServedApp("acme", "a 1", HttpApp(lambda: Pages().serve, public=("", "static/"))),
            ServedApp("plain", "p 1", HttpApp(lambda: Pages().serve)),
        ]
        apps = PluginApps(offers, tokens, **options)
        guarded = Guard(RequestLimits(apps), ["testserver"], tokens, apps.pages)
        return TestClient(guarded), apps.pages

    return pages


OURS = {"Origin": "http://testserver"}


def test_pages_are_for_everybody_and_what_is_below_them_is_not(pages):
    web, _ = pages()
    assert web.get("/plugins/acme/").text == "None []"
    assert web.get("/plugins/acme/static/x.js").status_code == 200
    assert web.post("/plugins/acme/").status_code == 401
    assert web.get("/plugins/acme/data").status_code == 401
    assert web.get("/plugins/plain/data").text == "None []"


def test_a_page_logs_in_once_and_its_cookie_counts_for_requests_of_pages(pages):
    web, of_server = pages()
    assert web.post("/plugins/acme/login", json={"token": of_server.random_token}).status_code == 403
    assert web.post("/plugins/acme/login", json={"token": "wrong"}, headers=OURS).status_code == 401
    assert web.post("/plugins/acme/login", json={"token": of_server.random_token}, headers=OURS).status_code == 204
    answer = web.get("/plugins/acme/data")
    assert answer.text == "local ['answerer', 'csrf_token']"
    csrf = {"X-CSRF-Token": answer.headers["x-csrf"]}
    assert web.post("/plugins/acme/data", headers=csrf).status_code == 403
    assert web.post("/plugins/acme/data", headers=OURS).status_code == 403
    assert web.post("/plugins/acme/data", headers={**OURS, **csrf}).text == "local ['answerer', 'csrf_token']"
    assert web.get("/plugins/acme/data", headers={"Sec-Fetch-Site": "same-site"}).status_code == 403
    assert web.get("/plugins/plain/data").text == "None []"
    assert web.post("/plugins/acme/logout", headers={**OURS, **csrf}).status_code == 204
    assert web.get("/plugins/acme/data").status_code == 401


def test_with_tokens_pages_are_for_their_owners_and_programs_need_no_cookie(pages):
    names = {"alices-token-for-tests": "alice", "bobs-token-for-tests": "bob"}
    tokens = Tokens({token: Owner(name, is_person=False) for token, name in names.items()})
    web, of_server = pages(tokens)
    assert of_server.random_token is None
    bearer = {"Authorization": "Bearer bobs-token-for-tests"}
    assert web.post("/plugins/acme/data", headers=bearer).text == "bob ['answerer']"
    assert web.post("/plugins/acme/login", json={"token": "alices-token-for-tests"}, headers=OURS).status_code == 204
    assert web.get("/plugins/acme/data").text.startswith("alice")
    assert web.get("/plugins/plain/data").status_code == 401


def test_an_application_alone_is_at_the_top_and_the_others_are_nowhere(pages):
    web, _ = pages(alone="acme")
    assert web.get("/").text == "None []"
    assert web.get("/plugins/plain/data").status_code == 401


@pytest.mark.anyio
async def test_what_runs_beside_an_application_ends_with_the_server_and_harms_nothing_by_failing(caplog):
    ran = []

    async def work():
        ran.append("work")
        await anyio.sleep_forever()

    async def fail():
        ran.append("fail")
        raise StorageError("the database is away")

    def offer(name, beside):
        return ServedApp(name, name, HttpApp(lambda: None, beside=beside))

    apps = PluginApps([offer("good", work), offer("bad", fail), offer("none", None)])
    with anyio.move_on_after(0.2) as scope:
        await apps.run_beside()
    assert scope.cancelled_caught
    assert sorted(ran) == ["fail", "work"]
    assert "the database is away" in caplog.text


def test_serve_apps_and_open_store_are_for_plugins():
    assert callable(serve_apps)
    with pytest.raises(AttributeError):
        _ = api.nothing_of_the_kind


@pytest.mark.anyio
async def test_a_store_is_opened_by_its_name_or_as_configured(project):
    from deepwork.testing import a_session

    async with open_store(project.root, "json") as store:
        await store.save(a_session(), expected=None)
    async with open_store(project.root) as store:
        assert [summary.session_id for summary in await store.find()] == ["s1"]
    with pytest.raises(UnknownName):
        async with open_store(project.root, "nowhere"):
            pass
