from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from deepwork import api
from deepwork.api import HttpApp
from deepwork.errors import PluginLoadError
from deepwork.loading.discovery import Candidate
from deepwork.loading.manager import Provided
from deepwork.server.http.plugins import PluginApps


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
        by = Candidate(name, f"deepwork-{name}", "1", lambda: None)
        return [Provided(HttpApp(app=app), by) for app in apps]

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


def test_serve_apps_and_open_store_are_for_plugins():
    assert callable(api.serve_apps)
    with pytest.raises(AttributeError):
        _ = api.nothing_of_the_kind


@pytest.mark.anyio
async def test_a_store_is_opened_by_its_name_or_as_configured(project):
    from deepwork.testing import a_session

    async with api.open_store(project.root, "json") as store:
        await store.save(a_session(), expected=None)
    async with api.open_store(project.root) as store:
        assert [summary.session_id for summary in await store.find()] == ["s1"]
    with pytest.raises(api.UnknownName):
        async with api.open_store(project.root, "nowhere"):
            pass
