"""MCP. Apart from the testing kit, this package imports FastMCP first; the feature `http` runs what it has built."""

from __future__ import annotations

import os
from importlib import import_module

from pydantic import BaseModel

# By default FastMCP reads `.env` of the current folder, looks for updates and prints a banner when it is imported or
# run.
_QUIET = {
    "FASTMCP_ENV_FILE": os.devnull,
    "FASTMCP_CHECK_FOR_UPDATES": "off",
    "FASTMCP_SHOW_SERVER_BANNER": "false",
    "FASTMCP_LOG_ENABLED": "false",
}
_added = [name for name in _QUIET if name not in os.environ]
os.environ.update({name: _QUIET[name] for name in _added})
# The MCP SDK has hundreds of models, for each revision of the protocol, and a client speaks one. So what validates a
# model is built when the model is first used, by the thread of the event loop. Our own are used by many threads, and
# before 2.14 pydantic built no model safely in two at once.
_model_config = BaseModel.model_config
BaseModel.model_config = {**_model_config, "defer_build": True}
try:
    import_module("fastmcp.server.server")
finally:
    BaseModel.model_config = _model_config
    for _name in _added:
        del os.environ[_name]

from deepwork.server.build import create_server  # noqa: E402

__all__ = ["create_server"]
