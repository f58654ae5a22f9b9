"""An HTTPS server on loopback with its own certificate, and a client that sends any bytes."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trustme

from capsmith_runtime.kube.certificates import CertificateFiles, Certificates
from capsmith_runtime.kube.http_server import HTTPLimits, HTTPServer, RequestHandler
from capsmith_runtime.kube.metrics import Metrics


@dataclass
class Reply:
    """One response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Return the decoded body."""
        return json.loads(self.body)


def write_certificate(folder: Path, authority: trustme.CA, name: str = "127.0.0.1") -> None:
    """Write the files that cert-manager mounts."""
    issued = authority.issue_cert(name)
    folder.mkdir(exist_ok=True)
    issued.private_key_pem.write_to_path(folder / "tls.key")
    issued.cert_chain_pems[0].write_to_path(folder / "tls.crt")
    authority.cert_pem.write_to_path(folder / "ca.crt")


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    """Return a client context that trusts the authority."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@dataclass
class Running:
    """A running server."""

    port: int
    certificates: Certificates
    context: ssl.SSLContext

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection."""
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=self.context)

    async def post(self, path: str, body: bytes = b"{}", method: str = "POST") -> Reply:
        """Send one request on a new connection."""
        reader, writer = await self.open()
        try:
            writer.write(request(path, body, method))
            return await reply(reader)
        finally:
            writer.close()


@asynccontextmanager
async def serving(
    folder: Path,
    handler: RequestHandler,
    *,
    client_authority: str = "",
    limits: HTTPLimits | None = None,
) -> AsyncIterator[Running]:
    """Serve with a new authority."""
    authority = trustme.CA()
    write_certificate(folder, authority)
    files = CertificateFiles(directory=folder, client_authority=client_authority)
    certificates = Certificates(files, Metrics(), "webhook")
    if client_authority:
        authority.cert_pem.write_to_path(folder / client_authority)
    assert certificates.refresh()
    server = HTTPServer("127.0.0.1", 0, handler, limits)
    port = await server.start(certificates.server_context())
    try:
        yield Running(port, certificates, trusting(authority))
    finally:
        await server.close()


def request(path: str, body: bytes = b"{}", method: str = "POST") -> bytes:
    """Return a request as Go's client writes it: no content type."""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def reply(reader: asyncio.StreamReader) -> Reply:
    """Read one response; raise IncompleteReadError if there is none."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    body = await reader.readexactly(int(headers["content-length"]))
    return Reply(int(head[0].split()[1]), headers, body)
