"""A network between clients and PostgreSQL that breaks at the worst moment; tests and `tools/torture` use it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

COMMIT = b"COMMIT\0"
_SECONDS = 5


class Proxy:
    """Passes bytes between clients and a server, and cuts one connection at a message.

    Attributes:
        port: Where it listens.
        cut: "before" or "after" the server has got the next message that has `at` in it; None once it was cut.
        at: What that message has in it; with nothing, it is any message.
        skip: So many of those messages come before that one.
        when_cut: Called before the client learns that its connection is gone.
        stays_away: Accepts no connections afterwards.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._peers = [self._listener]
        self._answered: dict[socket.socket, threading.Event] = {}
        self.port: int = self._listener.getsockname()[1]
        self.cut: str | None = None
        self.at = COMMIT
        self.skip = 0
        self.when_cut: Callable[[], object] = lambda: None
        self.stays_away = False
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Close all connections."""
        for peer in self._peers:
            _close(peer)
            peer.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                if self.stays_away and self.cut is None:
                    raise ConnectionRefusedError
                server = socket.create_connection(self._server)
            except OSError:
                client.close()
                continue
            self._peers += [client, server]
            threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
            threading.Thread(target=self._answers, args=(client, server), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):  # the other side may be closed already
            while data := _received(client):
                if self.cut and self.at in data:
                    if not self.skip:
                        self._cut(client, server, data)
                        break
                    self.skip -= 1
                server.sendall(data)
        _close(server)

    def _cut(self, client: socket.socket, server: socket.socket, data: bytes) -> None:
        cut, self.cut = self.cut, None
        answered = self._answered[server] = threading.Event()  # what comes now is not passed on
        if cut == "after":
            server.sendall(data)
            answered.wait(_SECONDS)
        self.when_cut()
        _close(client)

    def _answers(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while data := _received(server):
                if server in self._answered:
                    self._answered[server].set()
                else:
                    client.sendall(data)
        except OSError:
            pass
        if server not in self._answered:
            _close(client)


@contextmanager
def proxy_to(database_url: str) -> Iterator[tuple[Proxy, str]]:
    """Stand before the server of a database; give the proxy, and the URL of the database through it."""
    parts = urlsplit(database_url)
    proxy = Proxy(parts.hostname or "127.0.0.1", parts.port or 5432)
    user = parts.netloc.rpartition("@")[0]
    through = parts._replace(netloc=f"{user}@127.0.0.1:{proxy.port}", query="sslmode=disable")
    try:
        yield proxy, through.geturl()
    finally:
        proxy.close()


def _received(peer: socket.socket) -> bytes:
    try:
        return peer.recv(65536)
    except OSError:
        return b""


def _close(peer: socket.socket) -> None:
    with suppress(OSError):
        peer.shutdown(socket.SHUT_RDWR)
