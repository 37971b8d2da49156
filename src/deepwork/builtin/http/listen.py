"""Where a server listens over HTTP, and who may call it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from deepwork.builtin.http.tokens import Tokens, read_tokens
from deepwork.errors import ConfigError
from deepwork.ports.call import is_loopback

LOOPBACK = "127.0.0.1"

_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|[0-9A-Fa-f:]{2,45}")


@dataclass(frozen=True, kw_only=True)
class ListenOptions:
    """Where a server listens, and who may call it.

    Attributes:
        host: The address to listen on.
        port: The port; 0 takes a free one.
        allowed_hosts: Names that a Host header may contain, besides those of the loopback address.
        tokens: Who may call; everybody on this machine if None.
        or_free_port: Whether to take a free port if that one is in use.
    """

    host: str = LOOPBACK
    port: int = 8000
    allowed_hosts: tuple[str, ...] = ()
    tokens: Tokens | None = None
    or_free_port: bool = False


def listen_options(
    host: str, port: int, allowed_hosts: Iterable[str], token_file: Path | None, *, or_free_port: bool = False
) -> ListenOptions:
    """Check where to listen and who may call, and read the token file.

    Raises:
        ConfigError: Other machines could call without a token or by any host name, or the token file is invalid.
    """
    allowed_hosts = tuple(allowed_hosts)
    for name in allowed_hosts:
        if not _HOST_NAME.fullmatch(name):
            raise ConfigError(
                f"--allowed-host {name!r} is not a host name",
                hint="Give the bare name: no scheme, no port, no wildcard.",
            )
    if is_loopback(host):
        allowed_hosts = (host, *allowed_hosts)
    elif token_file is None or not allowed_hosts:
        raise ConfigError(
            f"on {host!r} other machines can reach this server, so it needs --token-file and --allowed-host",
            hint="Write lines NAME TOKEN into a file of mode 600, and name the host as clients address it.",
        )
    tokens = read_tokens(token_file) if token_file else None
    return ListenOptions(host=host, port=port, allowed_hosts=allowed_hosts, tokens=tokens, or_free_port=or_free_port)
