"""A receiver of notifications, on this machine: for tests, and for `tools/torture notifications`."""

from __future__ import annotations

import hmac
import json
import threading
import time
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = "a secret of sufficient length"


class Webhook:
    """A real server that notes what it gets, and answers with these statuses, then with 204.

    Attributes:
        url: Where it listens.
        requests: Path, headers, JSON and bytes of each request.
        times: When each came.
        forged: How many were not signed with `SECRET`, in the last five minutes.
        at_request: Called at the very moment of a request, before it is answered.
    """

    def __init__(self, *statuses, at_request=None):
        self.requests, self.times, self.forged = [], [], 0
        self.at_request = at_request
        answers = list(statuses)
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                webhook.requests.append((self.path, dict(self.headers), json.loads(body), body))
                webhook.times.append(time.monotonic())
                webhook.forged += not is_signed(self.headers.get("Deepwork-Signature", ""), body)
                if webhook.at_request:
                    webhook.at_request()
                status = answers.pop(0) if answers else 204
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", "/elsewhere")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # a killed sender breaks its connection
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook?room=1"

    @property
    def told(self):
        """The id and state of each thing that it was told of."""
        return [(content["id"], content["state"]) for _, _, content, _ in self.requests]

    def close(self):
        self._server.shutdown()
        self._server.server_close()


def is_signed(header, body):
    """True if a signature is that of the secret, and of the last five minutes."""
    parts = dict(part.partition("=")[::2] for part in header.split(","))
    expected = hmac.new(SECRET.encode(), f"{parts.get('t')}.".encode() + body, sha256).hexdigest()
    return parts.get("v1") == expected and abs(time.time() - int(parts["t"])) < 300
