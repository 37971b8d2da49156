from __future__ import annotations

import subprocess
import sys

from deepwork.testing import PluginContract


class TestPlugin(PluginContract):
    plugin = "tracking"


def test_a_server_declares_what_it_has_without_the_libraries_for_databases():
    code = """
import sys
from deepwork.api import open_context
from deepwork_tracking.plugin import deepwork_commands, deepwork_http, deepwork_tool_sets
context = open_context("tracking", ".")
[*deepwork_tool_sets(context), *deepwork_http(context), *deepwork_commands()]
print([name for name in sys.modules if name.partition(".")[0] in ("sqlalchemy", "alembic", "pathspec", "psycopg")])
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
