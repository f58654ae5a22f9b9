"""Faults of requests on their way, and the requests to which they apply."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from urllib.parse import parse_qsl, urlsplit

from .http1 import Answer, Head


class Loss(Enum):
    """Ways in which no response arrives."""

    DROP = auto()
    """The connection breaks before the server has seen the request."""
    UNANSWERED = auto()
    """The server has done what it was asked; the connection breaks before it can say so."""
    SILENCE = auto()
    """Nothing ever comes."""


@dataclass(frozen=True)
class Hold:
    """A request waits for the event."""

    until: threading.Event


Fault = Answer | Loss | Hold


@dataclass(frozen=True)
class Request:
    """One request as it arrived."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    at: float = field(default_factory=time.monotonic)

    @property
    def watch(self) -> bool:
        return self.query.get("watch") == "true"

    @property
    def write(self) -> bool:
        return self.method != "GET"

    def __str__(self) -> str:
        return f"{'WATCH' if self.watch else self.method} {self.path}"


def request_of(head: Head, body: bytes) -> Request:
    method, target, _ = head.start.split(" ", 2)
    parts = urlsplit(target)
    return Request(method, parts.path, dict(parse_qsl(parts.query)), head.headers, body)


@dataclass
class Injection:
    """A fault for requests for which `applies` is true, for `times` of them or all."""

    fault: Fault
    applies: Callable[[Request], bool]
    times: int | None = None
    hits: int = 0

    def take(self, request: Request) -> Fault | None:
        if self.hits == self.times or not self.applies(request):
            return None
        self.hits += 1
        return self.fault


def failure(status: int, reason: str, message: str = "injected", **headers: str) -> Answer:
    """Return an error as the API server words it; header names have underscores for hyphens."""
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": status,
    }
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, json.dumps(body).encode(), named)
