"""The hooks of the feature `http`. Nothing of a web server is imported before a transport runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Literal

from deepwork import hookimpl
from deepwork.builtin.http.options import NEEDLESS, OPTIONS, STATELESS
from deepwork.foreign import demand
from deepwork.ports.records import PageAddress, ServedApp, Serving, TransportSpec


@hookimpl
def deepwork_transports() -> Iterator[TransportSpec]:
    """`http`, which also serves the applications of plugins alone, and `sse` for old clients."""
    yield TransportSpec(
        name="http",
        open=partial(_open, "http"),
        options=(*OPTIONS, STATELESS),
        needless=NEEDLESS,
        serve_apps=_serve_apps,
    )
    yield TransportSpec(
        name="sse", about="sse is for old clients", open=partial(_open, "sse"), options=OPTIONS, needless=NEEDLESS
    )


def _open(transport: Literal["http", "sse"], values: Mapping[str, Any]) -> Callable[[Serving], None]:
    from deepwork.builtin.http.listen import listen_options

    listen = listen_options(values["host"], values["port"], values["allowed_hosts"], values["token_file"])

    def serve(serving: Serving) -> None:
        demand(transport)
        from deepwork.builtin.http.app import run_http

        run_http(serving, transport, listen, stateless=bool(values.get("stateless")))

    return serve


def _serve_apps(
    apps: Sequence[ServedApp],
    lifespan: Callable[[Any], AbstractAsyncContextManager[Any]],
    *,
    alone: str | None,
    listening: Callable[[PageAddress], None] | None,
    **where: Any,
) -> None:
    """Serve applications as `deepwork.server.apps.serve_apps` says; `where` is what `listen_options` takes."""
    demand("http")
    from deepwork.builtin.http.app import run_apps
    from deepwork.builtin.http.listen import listen_options
    from deepwork.builtin.http.plugins import PluginApps

    options = listen_options(**where)
    run_apps(PluginApps(apps, options.tokens, alone=alone), options, lifespan, listening)
