from __future__ import annotations

import pytest

from deepwork import __version__
from deepwork.errors import NameClash, PluginLoadError
from deepwork.loading.selection import by_name

pytestmark = pytest.mark.anyio


def test_stores_are_collected_and_attributed(ask):
    provided = ask("state_stores", "good")
    assert sorted((store.item.name, str(store.by)) for store in provided) == [
        ("acme", "acme-tracker 2.1 (plugin 'acme')"),
        ("json", f"deepwork {__version__} (feature 'json_store')"),
        ("memory", f"deepwork {__version__} (feature 'memory_store')"),
    ]


def test_two_stores_of_one_name_clash(ask):
    with pytest.raises(NameClash, match="state store 'json' is offered twice"):
        by_name("state store", ask("state_stores", "clash_store"), lambda spec: spec.name)


def test_a_plugin_that_ends_the_process_is_named(ask):
    with pytest.raises(PluginLoadError) as error:
        ask("state_stores", "raising_everywhere")
    assert error.value.message == (
        "deepwork-raising-everywhere 0.17 (plugin 'raising_everywhere'): "
        "hook deepwork_state_stores failed: SystemExit: no licence found (raising_everywhere/__init__.py, line 15)"
    )


def test_something_that_is_no_record_is_refused(ask):
    with pytest.raises(PluginLoadError, match="hook deepwork_state_stores gave int, not StateStoreSpec"):
        ask("state_stores", "nonsense")


async def test_a_store_is_opened_at_the_first_use_and_closed_with_the_server(project, ask):
    ask("state_stores", "good")
    log = project.root / "acme-store.log"
    async with project.agent(state_store="acme") as agent:
        await agent.client.list_tools()
        assert not log.exists()
        await agent.start("project_tour", "write_tour")
        assert log.read_text() == "opened\n"
    assert log.read_text() == "opened\nclosed\n"
