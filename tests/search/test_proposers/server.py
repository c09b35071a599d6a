"""A server on this machine that speaks both ways of the model APIs and replays recorded replies, good ones and bad."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

REPLIES = Path(__file__).parent / "replies"


def recorded(name: str) -> str:
    """The text of a recorded reply."""
    return (REPLIES / f"{name}.md").read_text()


@dataclass
class Reply:
    """``text`` is what the model says; ``raw`` is sent as it is; ``drip`` seconds are waited after each byte."""

    text: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    pause: float = 0.0
    drip: float = 0.0
    hang_up: bool = False


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies: list[Reply] = []
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        reply = self.server.replies.pop(0)
        if reply.hang_up:
            self.close_connection = True
            return
        time.sleep(reply.pause)
        raw = self.form(reply.text, self.path) if reply.raw is None else reply.raw
        self.send_response(reply.status)
        for name, value in {
            "content-type": "application/json",
            "content-length": str(len(raw)),
            **reply.headers,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.write(raw, reply.drip)

    def do_GET(self) -> None:
        self.server.asked.append((self.path, {k.lower(): v for k, v in self.headers.items()}, {}))
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def write(self, raw: bytes, drip: float) -> None:
        try:
            for i in range(0, len(raw), 1 if drip else len(raw) or 1):
                self.wfile.write(raw[i : i + (1 if drip else len(raw))])
                self.wfile.flush()
                time.sleep(drip)
        except OSError:
            pass

    def form(self, text: str, path: str) -> bytes:
        if path.endswith("/messages"):
            return json.dumps({"content": [{"type": "text", "text": text}], "usage": {
                "input_tokens": 100, "output_tokens": 20}}).encode()  # fmt: skip
        return json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}], "usage": {
            "prompt_tokens": 100, "completion_tokens": 20}}).encode()  # fmt: skip

    def log_message(self, *args: object) -> None:
        return None


@contextmanager
def serving(*replies: Reply) -> Iterator[Server]:
    made = Server()
    made.replies = list(replies)
    thread = threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.shutdown()
        made.server_close()
