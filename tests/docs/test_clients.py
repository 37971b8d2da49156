"""Each client has a page, whose entry and hooks are what `deepwork connect` writes."""

from __future__ import annotations

import re

import pytest

from deepwork.builtin.clients.files import with_entry
from deepwork.builtin.clients.hook_entries import with_hooks
from deepwork.builtin.clients.table import CLIENTS, NAME

PROGRAM = "/home/ada/.deepwork-venv/bin/deepwork"
ROOT = "/projects/demo"


def block(text, kind, name):
    return re.search(rf"<!-- {kind}: {name} -->\n```\w+\n(.*?)```", text, re.DOTALL)[1]


@pytest.mark.parametrize("name", CLIENTS)
def test_the_page_of_a_client_shows_what_connect_writes(page, name):
    client = CLIENTS[name]
    text = page(f"docs/how-to/clients/{name}.md").text
    folder = client.folder or ROOT
    entry = {**client.entry([PROGRAM, "serve", "--path", folder]), **client.extras}
    assert block(text, "entry", name) == with_entry("", client.syntax, client.keys_of_entry, entry)
    assert f"deepwork connect {name}" in text
    if client.hooks:
        assert block(text, "hooks", name) == with_hooks(client, [PROGRAM], None, "", NAME)
