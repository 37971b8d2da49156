"""Where a server listens, and whom it lets in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from deepwork.errors import ConfigError
from deepwork.server.http.tokens import Tokens, read_tokens

LOOPBACK = "127.0.0.1"

_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|[0-9A-Fa-f:]{2,45}")


@dataclass(frozen=True, kw_only=True)
class Doors:
    """Where a server listens and whom it lets in.

    Attributes:
        host: The address to listen on.
        port: The port; 0 takes a free one.
        names: What may stand in a Host header, besides this machine's own names.
        tokens: Who may call; everybody on this machine if None.
    """

    host: str = LOOPBACK
    port: int = 8000
    names: tuple[str, ...] = ()
    tokens: Tokens | None = None


def doors(host: str, port: int, names: Iterable[str], token_file: Path | None) -> Doors:
    """Check where to listen and whom to let in.

    Raises:
        ConfigError: Others than this machine could call without a token or by any name, or the token file is not right.
    """
    names = tuple(names)
    for name in names:
        if not _HOST_NAME.fullmatch(name):
            raise ConfigError(
                f"--allowed-host {name!r} is no host name", hint="Give the bare name: no scheme, no port, no wildcard."
            )
    if is_loopback(host):
        names = (host, *names)
    elif token_file is None or not names:
        raise ConfigError(
            f"on {host!r} other machines can reach this server, so it needs --token-file and --allowed-host",
            hint="Write lines NAME TOKEN into a file of mode 600, and name the host as clients address it.",
        )
    tokens = read_tokens(token_file) if token_file else None
    return Doors(host=host, port=port, names=names, tokens=tokens)


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach a server that listens there."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
