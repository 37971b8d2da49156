"""The URL of a PostgreSQL: taken apart, so that only parts that cannot be a password are ever shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Self
from urllib.parse import quote, unquote, unquote_plus

# Raw `@ : / ? #` would leave open where a password ends, so a URL that has one too many is not taken apart.
_URL = re.compile(
    r"(?P<scheme>postgresql|postgres)://"
    r"(?:(?P<user>[^@:/?#\s]*)(?::(?P<password>[^@/?#\s]*))?@)?"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^@:/?#\[\]\s]*)(?::(?P<port>[0-9]*))?"
    r"(?:/(?P<database>[^@:/?#\s]*))?(?:\?(?P<query>[^@?#\s]*))?"
)
# The allowed characters of the decoded parts: none that could begin a further part.
_SHAPES = {
    "user": re.compile(r"[^\x00-\x20\x7f:/?#\[\];=&%]*"),
    "password": re.compile(r"[^\x00]*"),
    "host": re.compile(r"[\w.,:/~-]*"),
    "port": re.compile(r"[0-9]{0,5}"),
    "database": re.compile(r"[^\x00-\x1f\x7f@:/?#\[\];=&%]*"),
}
_PARAMETER = re.compile(r"[a-z_]+")
_SECRET = re.compile(r"pass|secret|key|token")
_MAX_PORT = 65535
# A parameter says the same as a part of the URL, and counts instead of it, as for libpq.
_PARTS = {"user": "user", "password": "password", "host": "host", "port": "port", "dbname": "database"}


@dataclass(frozen=True)
class ServerUrl:
    """The parts of a URL, decoded.

    Attributes:
        scheme: As it was written.
        user: Who logs in.
        password: Never shown.
        host: Names or addresses of servers, or the folder of a socket.
        port: Where they listen.
        database: Its name.
        parameters: What else the driver is told; never shown.
    """

    scheme: str
    user: str | None
    password: str | None = field(repr=False)
    host: str | None
    port: int | None
    database: str | None
    parameters: Mapping[str, str] = field(repr=False)

    @classmethod
    def parse(cls, url: object) -> Self | None:
        """Take a URL apart; None if it is not certain where each part begins and ends."""
        match = _URL.fullmatch(url) if isinstance(url, str) else None
        parameters = _parameters(match["query"] or "") if match else None
        if match is None or parameters is None:
            return None
        parts = {name: unquote(match[name]) if match[name] else None for name in _PARTS.values()}
        parts["host"] = parts["host"].strip("[]") if parts["host"] else None
        parts |= {part: parameters.pop(name) for name, part in _PARTS.items() if name in parameters}
        if not all(shape.fullmatch(parts[name] or "") for name, shape in _SHAPES.items()):
            return None
        port = int(parts["port"]) if parts["port"] else None
        if port is not None and port > _MAX_PORT:
            return None
        return cls(match["scheme"], **{**parts, "port": port}, parameters=parameters)  # type: ignore[arg-type]  # by their names

    def __str__(self) -> str:
        """Write scheme, user, host, port and database."""
        user = f"{quote(self.user)}@" if self.user else ""
        host = (f"[{self.host}]" if ":" in self.host else quote(self.host, safe=",")) if self.host else ""
        port = f":{self.port}" if self.port else ""
        database = f"/{quote(self.database)}" if self.database else ""
        return f"{self.scheme}://{user}{host}{port}{database}"

    @property
    def has_secret(self) -> bool:
        """Whether everybody who can read the URL can read a password."""
        return bool(self.password) or any(_SECRET.search(name) for name in self.parameters)


def secret_values(password: str | None, parameters: Mapping[str, object]) -> set[str]:
    """Return secrets that a driver was told and may quote in a message."""
    values = {name: str(value) for name, value in parameters.items()}
    hidden = {value for name, value in values.items() if _SECRET.search(name) or "=" in value}
    return {*hidden, password or ""} - {""}


def shown_url(url: object) -> str:
    """Write what a user may be shown, and trusts, of a setting that should be the URL of a database.

    Parameters say how the server is reached and checked, so others need trust anew: they count by a fingerprint.
    """
    if isinstance(url, str) and url.startswith("sqlite:") and (path := sqlite_path(url)) is not None:
        return f"sqlite:///{path}"
    server = ServerUrl.parse(url)
    if server is None:
        return "(not the URL of a database, so not shown)"
    open_parameters = {name: value for name, value in server.parameters.items() if not _SECRET.search(name)}
    if not open_parameters:
        return str(server)
    fingerprint = sha256(repr(sorted(open_parameters.items())).encode()).hexdigest()[:12]
    return f"{server} with {', '.join(sorted(open_parameters))} (fingerprint {fingerprint})"


def sqlite_path(url: str) -> str | None:
    """Return the absolute path that an `sqlite:///` URL names; None if it names none, or says more."""
    path = unquote(url.removeprefix("sqlite://"))
    is_path = url.startswith("sqlite:////") and not re.search(r"[?#]", url)
    return path[1:] if is_path and path.isprintable() else None


def _parameters(query: str) -> dict[str, str] | None:
    """Read the parameters; None if one has no name."""
    parameters = {}
    for item in filter(None, query.split("&")):
        name, has_value, value = item.partition("=")
        name = unquote_plus(name)
        value = unquote_plus(value)
        if not has_value or not _PARAMETER.fullmatch(name) or re.search("[\0;]", value):
            return None
        parameters[name] = value
    return parameters
