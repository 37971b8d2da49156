"""Where notifications go: a webhook, or a command. Neither is ever shown with its secret.

A webhook gets its one POST from here, without a library of HTTP clients. `httpx` is not installed with us; `httpx2` is,
but only because `mcp` needs it, and `mcp` may change that in any release. What such a library adds (redirects, proxies,
pools, cookies, retries) must not happen to a signed body, and would have to be switched off.
"""

from __future__ import annotations

import hmac
import ssl
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult

import anyio
from anyio.abc import ByteStream

from deepwork.errors import DeepWorkError, ProgramError
from deepwork.programs.processes import run_program
from deepwork.text import one_line

SECONDS = 10.0
COMMAND_SECONDS = 30.0
MAX_ANSWER = 64 * 1024
# So long the rest of an answer is read, so that the other side does not see its connection broken.
REST_SECONDS = 1.0
SIGNATURE = "Deepwork-Signature"


class Notification(NamedTuple):
    """What is sent: the JSON, and by what a receiver knows a repeat."""

    key: str
    body: bytes


class NotSent(DeepWorkError):
    """The other side has not said that it has it."""


class Target(ABC):
    """One receiver of notifications.

    Attributes:
        name: What people are shown.
        key: The key of its notes of sent notifications.
    """

    name: str
    key: str

    @abstractmethod
    async def send(self, notification: Notification) -> None:
        """Send, and return once the other side has it.

        Raises:
            NotSent: It has not, or does not say so in time.
        """


class Webhook(Target):
    """An address that takes a POST. Redirects are not followed: the signed body goes where the user has said.

    Args:
        url: The address, of `https`, or of `http` on this machine.
        secret: Signs what is sent.
    """

    def __init__(self, url: SplitResult, secret: str) -> None:
        self.name = f"webhook {url.scheme}://{url.netloc}"
        self.key = f"webhook {sha256(url.geturl().encode()).hexdigest()[:16]}"
        self._url = url
        self._secret = secret.encode()
        self._tls = ssl.create_default_context() if url.scheme == "https" else None

    async def send(self, notification: Notification) -> None:
        """Make one request, and read the status."""
        try:
            with anyio.fail_after(SECONDS):
                status = await self._posted(notification)
        except TimeoutError:
            raise NotSent(f"{self.name} did not answer within {SECONDS:g} s") from None
        except (OSError, ssl.SSLError, ValueError, anyio.EndOfStream, anyio.BrokenResourceError) as error:
            raise NotSent(f"{self.name}: {one_line(str(error) or type(error).__name__)}") from None
        if not 200 <= status < 300:
            moved = "; redirects are not followed" if 300 <= status < 400 else ""
            raise NotSent(f"{self.name} answered {status}{moved}")

    async def _posted(self, notification: Notification) -> int:
        host, port = self._url.hostname or "", self._url.port or (443 if self._tls else 80)
        async with await self._connected(host, port) as stream:
            await stream.send(self._request(notification))
            answer = b""
            while (status := _status(answer)) is None:
                if len(answer) > MAX_ANSWER:
                    raise ValueError("the answer is not one of HTTP")
                answer += await stream.receive()
            with anyio.move_on_after(REST_SECONDS):
                remaining = MAX_ANSWER
                while remaining > 0:
                    try:
                        remaining -= len(await stream.receive())
                    except (anyio.EndOfStream, anyio.BrokenResourceError, OSError):
                        break
        return status

    async def _connected(self, host: str, port: int) -> ByteStream:
        if self._tls is None:
            return await anyio.connect_tcp(host, port)
        return await anyio.connect_tcp(
            host, port, ssl_context=self._tls, tls_hostname=host, tls_standard_compatible=False
        )

    def _request(self, notification: Notification) -> bytes:
        path = f"{self._url.path or '/'}{f'?{self._url.query}' if self._url.query else ''}"
        headers = {
            "Host": self._url.netloc,
            "Content-Type": "application/json",
            "Content-Length": str(len(notification.body)),
            "User-Agent": "deepwork",
            "Idempotency-Key": notification.key,
            SIGNATURE: signature(self._secret, int(time.time()), notification.body),
            "Connection": "close",
        }
        lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        return "\r\n".join([*lines, "", ""]).encode() + notification.body


class Command(Target):
    """A program that gets each notification on its stdin, and has it when it ends with code 0.

    Args:
        arguments: The program and its arguments.
        environment: All that it sees of the environment.
        project: The folder none of whose programs may run.
        folder: Where it runs.
    """

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], *, project: Path, folder: Path
    ) -> None:
        self.name = f"command {arguments[0]!r}"
        self.key = f"command {sha256(repr([*arguments]).encode()).hexdigest()[:16]}"
        self._arguments = arguments
        self._environment = environment
        self._project = project
        self._folder = folder

    async def send(self, notification: Notification) -> None:
        """Run the program once."""
        try:
            completed = await run_program(
                self._arguments,
                cwd=self._folder,
                environment=self._environment,
                seconds=COMMAND_SECONDS,
                stdin=notification.body,
                max_output=MAX_ANSWER,
                project=self._project,
            )
        except ProgramError as error:
            raise NotSent(f"{self.name}: {error.message}") from None
        if completed.returncode:
            said = one_line(completed.stderr.decode("utf-8", "replace"))
            raise NotSent(f"{self.name} {completed.ending}{f': {said}' if said else ''}")


def signature(secret: bytes, timestamp: int, body: bytes) -> str:
    """Sign a body at a time: `t=TIMESTAMP,v1=HEX`, HMAC-SHA256 of `TIMESTAMP.BODY`."""
    digest = hmac.new(secret, b"%d." % timestamp + body, sha256).hexdigest()
    return f"t={timestamp},v1={digest}"


def _status(answer: bytes) -> int | None:
    """Read the status of an answer; None while it is not there yet. Answers of the 100s come before the real one."""
    line, has_line, _ = answer.partition(b"\r\n")
    if not has_line:
        return None
    version, _, rest = line.partition(b" ")
    if not version.startswith(b"HTTP/1.") or not rest[:3].isdigit():
        raise ValueError("the answer is not one of HTTP")
    status = int(rest[:3])
    if status >= 200:
        return status
    _, has_end, following = answer.partition(b"\r\n\r\n")
    return _status(following) if has_end else None
