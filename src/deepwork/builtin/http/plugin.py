"""The hooks of the feature `http`. Nothing of a web server is imported before a transport runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Literal

from deepwork import hookimpl
from deepwork.builtin.http.options import NEEDLESS, OPTIONS, STATELESS
from deepwork.foreign import demand
from deepwork.ports.records import Serving, TransportSpec


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

        run_http(
            serving.server,
            transport,
            listen,
            serving.apps(),
            refusal=serving.refusal,
            stateless=bool(values.get("stateless")),
        )

    return serve


def _serve_apps(*arguments: Any, **options: Any) -> None:
    from deepwork.builtin.http.apps import serve_apps

    demand("http")
    serve_apps(*arguments, **options)
