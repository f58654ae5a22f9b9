"""Refuse all requests except those from this server's page, opened by its user.

Any user or web page on this computer can reach a port on the loopback interface.  A request
therefore needs the key, which is stored only in a private file.  The key is sent in a header, never
in an address or a cookie: cookies are not separated by port, so another user's server could receive
them.
"""

from __future__ import annotations

import secrets

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}
API = "/api/"


class Guard:
    """ASGI middleware that checks host, origin and key, and adds security headers."""

    def __init__(self, app: ASGIApp, host: str, key: str) -> None:
        """Guard an application. ``host`` is the only accepted host and port."""
        self._app = app
        self._host = host
        self._origin = f"http://{host}"
        self._key = f"Bearer {key}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the application, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *added]
            await send(message)

        refusal = self._judge(scope)
        app = self._app if refusal is None else refusal
        await app(scope, receive, send_with_headers)

    def _judge(self, scope: Scope) -> JSONResponse | None:
        """Return the response to a request that is refused, or None if it is accepted."""
        headers = Headers(scope=scope)
        # A request with another host name comes from a page that resolved its name to the loopback
        # address (DNS rebinding).
        if headers.get("host") != self._host:
            return _refuse(421, "another host")
        origin = headers.get("origin")
        if origin is not None and origin != self._origin:
            return _refuse(403, "another origin")
        if not scope["path"].startswith(API):
            return None
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return _refuse(403, "another site")
        if scope["method"] != "GET" and origin is None:
            return _refuse(403, "no origin")
        header = headers.get("authorization", "").encode()
        if not secrets.compare_digest(header, self._key):
            return _refuse(401, "the key is missing or wrong")
        return None


def _refuse(status: int, reason: str) -> JSONResponse:
    return JSONResponse({"error": reason}, status)
