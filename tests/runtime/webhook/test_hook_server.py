"""The server of webhooks: TLS, its certificate, and every kind of client."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path

import pytest
import trustme

from capsmith_runtime.kube import http_server
from capsmith_runtime.kube.http_server import Budget, HTTPLimits, Request, Response
from tests.runtime.webhook.hook_serving import (
    Running,
    reply,
    request,
    serving,
    trusting,
    write_certificate,
)

Scenario = Callable[[Running], Awaitable[None]]


async def echo(message: Request) -> Response:
    return Response(HTTPStatus.OK, message.path.encode() + b" " + message.body)


def run(folder: Path, scenario: Scenario, limits: HTTPLimits | None = None) -> None:
    async def main() -> None:
        async with asyncio.timeout(120), serving(folder, echo, limits=limits) as running:
            await scenario(running)

    asyncio.run(main())


def test_one_connection_takes_many_requests(tmp_path: Path) -> None:
    """Proves: RX-03."""

    async def scenario(running: Running) -> None:
        reader, writer = await running.open()
        for number in range(3):
            writer.write(request(f"/{number}?timeout=10s", b"x" * 100_000))
            answer = await reply(reader)
            assert (answer.status, answer.body[:4]) == (200, f"/{number} x".encode())
        writer.close()

    run(tmp_path, scenario)


def test_pipelined_requests(tmp_path: Path) -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await running.open()
        writer.write(request("/a", b"1") + request("/b", b"2"))
        assert [(await reply(reader)).body, (await reply(reader)).body] == [b"/a 1", b"/b 2"]
        writer.close()

    run(tmp_path, scenario)


def test_a_malformed_request_after_a_head_request(tmp_path: Path) -> None:
    """Only the response to HEAD has no body."""

    async def scenario(running: Running) -> None:
        reader, writer = await running.open()
        writer.write(request("/a", b"", "HEAD"))
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        writer.write(b"nonsense\r\n\r\n")
        assert (await reply(reader)).status == 400
        writer.close()

    run(tmp_path, scenario)


def test_chunked_bodies_and_100_continue(tmp_path: Path) -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await running.open()
        writer.write(b"POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n")
        writer.write(b"Expect: 100-continue\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
        writer.write(b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n")
        assert (await reply(reader)).body == b"/c abc"
        writer.close()

    run(tmp_path, scenario)


_SECOND = b"POST /second HTTP/1.1\r\nHost: a\r\n\r\n"
SMUGGLED = b"POST / HTTP/1.1\r\nHost: a\r\n%b\r\n%b\r\n\r\n0\r\n\r\n" + _SECOND
"""One request by its length, and two by its transfer coding."""


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (SMUGGLED % (b"Content-Length: 5", b"Transfer-Encoding: chunked"), 400),
        (SMUGGLED % (b"transfer-encoding: Chunked", b"CONTENT-LENGTH: 5"), 400),
        (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 200_000 + b"\r\n\r\n", 431),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (2**40), 413),
        (b"\x16\x03\x01\x02\x00" * 10 + b"\r\n\r\n", 400),
    ],
)
def test_malformed_requests_are_rejected(tmp_path: Path, sent: bytes, status: int) -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await running.open()
        writer.write(sent)
        answer = await reply(reader)
        assert (answer.status, answer.headers["connection"]) == (status, "close")
        assert await reader.read() == b""
        assert (await running.post("/still")).status == 200
        writer.close()

    run(tmp_path, scenario)


def test_an_endless_body_is_rejected(tmp_path: Path) -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await running.open()
        writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(3):
            writer.write(b"200\r\n" + b"z" * 512 + b"\r\n")
        assert (await reply(reader)).status == 413
        writer.close()

    run(tmp_path, scenario, HTTPLimits(body_bytes=1000))


def test_all_connections_share_one_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = Budget(2000)
    monkeypatch.setattr(http_server, "Budget", lambda total: budget)

    async def scenario(running: Running) -> None:
        reader, writer = await running.open()
        head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n"
        writer.write(head + b"a" * 899)
        while budget._left > 1200:
            await asyncio.sleep(0.01)
        assert (await running.post("/", b"b" * 200)).status == 503
        writer.write(b"a")
        assert (await reply(reader)).status == 200
        assert (await running.post("/", b"b" * 200)).status == 200
        writer.close()

    run(tmp_path, scenario)


def test_slow_clients_are_closed(tmp_path: Path) -> None:
    async def scenario(running: Running) -> None:
        for sent in (b"", b"POST / HT", request("/", b"body")[:-2]):
            reader, writer = await running.open()
            writer.write(sent)
            assert await reader.read() == b""
            writer.close()

    run(tmp_path, scenario, HTTPLimits(request_seconds=0.2))


def test_idle_connections_make_room(tmp_path: Path) -> None:
    async def scenario(running: Running) -> None:
        first, second = await running.open(), await running.open()
        for reader, writer in (first, second):
            writer.write(request("/"))
            await reply(reader)
        # Both are idle: the one that came first is closed.
        assert (await running.post("/third")).status == 200
        assert await first[0].read() == b""
        second[1].write(request("/again"))
        assert (await reply(second[0])).body == b"/again {}"
        second[1].close()

    run(tmp_path, scenario, HTTPLimits(connections=2))


def test_busy_connections_do_not_make_room(tmp_path: Path) -> None:
    limits = HTTPLimits(connections=1)
    works, go_on = asyncio.Event(), asyncio.Event()

    async def held(message: Request) -> Response:
        works.set()
        await go_on.wait()
        return Response(HTTPStatus.OK, b"done")

    async def main() -> None:
        async with asyncio.timeout(120), serving(tmp_path, held, limits=limits) as running:
            reader, writer = await running.open()
            writer.write(request("/"))
            await works.wait()
            with pytest.raises((asyncio.IncompleteReadError, OSError)):
                await running.post("/second")
            go_on.set()
            assert (await reply(reader)).body == b"done"
            writer.close()

    asyncio.run(main())


@pytest.mark.parametrize("error", [RuntimeError("no such key"), TimeoutError("no answer")])
def test_a_handler_that_fails_is_an_internal_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    async def fail(message: Request) -> Response:
        raise error

    async def main() -> None:
        async with asyncio.timeout(120), serving(tmp_path, fail) as running:
            reader, writer = await running.open()
            for _ in range(2):
                writer.write(request("/"))
                assert (await reply(reader)).status == 500
            writer.close()

    asyncio.run(main())
    assert str(error) in caplog.text


def test_requests_in_progress_are_answered_on_close(tmp_path: Path) -> None:
    works = asyncio.Event()

    async def slow(message: Request) -> Response:
        works.set()
        await asyncio.sleep(0.3)
        return Response(HTTPStatus.OK, b"late")

    async def main() -> None:
        async with asyncio.timeout(120):
            async with serving(tmp_path, slow) as running:
                reader, writer = await running.open()
                writer.write(request("/"))
                await works.wait()
            assert (await reply(reader)).body == b"late"
            writer.close()
            with pytest.raises(ConnectionRefusedError):
                await running.post("/")

    asyncio.run(main())


def test_plain_http_gets_no_response(tmp_path: Path) -> None:
    async def scenario(running: Running) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(request("/"))
        found = await reader.read()
        assert not found.startswith(b"HTTP")
        writer.close()

    run(tmp_path, scenario)


def test_only_http_1_is_offered(tmp_path: Path) -> None:
    async def scenario(running: Running) -> None:
        running.context.set_alpn_protocols(["h2", "http/1.1"])
        _, writer = await running.open()
        assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
        writer.close()

    run(tmp_path, scenario)


def test_a_new_certificate_is_served_at_once(tmp_path: Path) -> None:
    async def scenario(running: Running) -> None:
        _, kept = old = await running.open()
        other = trustme.CA()
        write_certificate(tmp_path, other)
        assert running.certificates.refresh()
        assert not running.certificates.refresh()
        assert running.certificates.ca_bundle == other.cert_pem.bytes()
        with pytest.raises(ssl.SSLCertVerificationError):
            await running.open()
        # An open connection is not closed.
        kept.write(request("/kept"))
        assert (await reply(old[0])).status == 200
        kept.close()
        running.context = trusting(other)
        assert (await running.post("/new")).status == 200

    run(tmp_path, scenario)


@pytest.mark.parametrize("broken", ["tls.crt", "tls.key", "both"])
def test_a_half_replaced_certificate_is_not_served(tmp_path: Path, broken: str) -> None:
    async def scenario(running: Running) -> None:
        before = {name: (tmp_path / name).read_bytes() for name in ("tls.crt", "tls.key")}
        write_certificate(tmp_path, trustme.CA())
        if broken == "both":
            (tmp_path / "tls.crt").unlink()
            (tmp_path / "tls.key").write_bytes(b"nothing of the kind")
        else:
            (tmp_path / broken).write_bytes(before[broken])
        assert not running.certificates.refresh()
        assert (await running.post("/old")).status == 200

    run(tmp_path, scenario)


def test_client_certificates_can_be_required(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            asyncio.timeout(120),
            serving(tmp_path, echo, client_authority="clients.crt") as running,
        ):
            with pytest.raises((OSError, asyncio.IncompleteReadError)):
                await running.post("/without-certificate")
            running.context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
            assert (await running.post("/with-certificate")).status == 200

    asyncio.run(main())
