"""What listens for core: TLS, its certificate, and whatever may come in."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path

import pytest
import trustme
from capsmith_generated.controllers.extension import http, server
from capsmith_generated.controllers.extension.http import Request, Response

from tests.contract_code.hook_serving import (
    Running,
    reply,
    request,
    serving,
    trusting,
    write_certificate,
)

Story = Callable[[Running], Awaitable[None]]


async def echo(asked: Request) -> Response:
    return Response(HTTPStatus.OK, asked.path.encode() + b" " + asked.body)


def play(folder: Path, story: Story) -> None:
    async def perform() -> None:
        async with asyncio.timeout(120), serving(folder, echo) as running:
            await story(running)

    asyncio.run(perform())


def test_one_connection_takes_many_requests(tmp_path: Path) -> None:
    """Proves: RX-03."""

    async def story(running: Running) -> None:
        reader, writer = await running.open()
        for number in range(3):
            writer.write(request(f"/{number}?timeout=10s", b"x" * 100_000))
            answer = await reply(reader)
            assert (answer.status, answer.body[:4]) == (200, f"/{number} x".encode())
        writer.close()

    play(tmp_path, story)


def test_requests_that_are_sent_ahead(tmp_path: Path) -> None:
    async def story(running: Running) -> None:
        reader, writer = await running.open()
        writer.write(request("/a", b"1") + request("/b", b"2"))
        assert [(await reply(reader)).body, (await reply(reader)).body] == [b"/a 1", b"/b 2"]
        writer.close()

    play(tmp_path, story)


def test_chunked_and_expecting(tmp_path: Path) -> None:
    async def story(running: Running) -> None:
        reader, writer = await running.open()
        writer.write(b"POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n")
        writer.write(b"Expect: 100-continue\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
        writer.write(b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n")
        assert (await reply(reader)).body == b"/c abc"
        writer.close()

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"POST / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 200_000 + b"\r\n\r\n", 431),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (2**40), 413),
        (b"\x16\x03\x01\x02\x00" * 10 + b"\r\n\r\n", 400),
    ],
)
def test_what_is_no_request_is_refused(tmp_path: Path, sent: bytes, status: int) -> None:
    async def story(running: Running) -> None:
        reader, writer = await running.open()
        writer.write(sent)
        answer = await reply(reader)
        assert (answer.status, answer.headers["connection"]) == (status, "close")
        assert await reader.read() == b""
        assert (await running.post("/still")).status == 200
        writer.close()

    play(tmp_path, story)


def test_a_body_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "BODY_BYTES", 1000)

    async def story(running: Running) -> None:
        reader, writer = await running.open()
        writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(3):
            writer.write(b"200\r\n" + b"z" * 512 + b"\r\n")
        assert (await reply(reader)).status == 413
        writer.close()

    play(tmp_path, story)


def test_all_connections_share_one_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = http.Budget(1000)
    monkeypatch.setattr(server, "Budget", lambda: budget)

    async def story(running: Running) -> None:
        reader, writer = await running.open()
        head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n"
        writer.write(head + b"a" * 899)
        while budget._left > 200:
            await asyncio.sleep(0.01)
        assert (await running.post("/", b"b" * 200)).status == 503
        writer.write(b"a")
        assert (await reply(reader)).status == 200
        assert (await running.post("/", b"b" * 200)).status == 200
        writer.close()

    play(tmp_path, story)


def test_who_is_too_slow_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "REQUEST_SECONDS", 0.2)

    async def story(running: Running) -> None:
        for sent in (b"", b"POST / HT", request("/", b"body")[:-2]):
            reader, writer = await running.open()
            writer.write(sent)
            assert await reader.read() == b""
            writer.close()

    play(tmp_path, story)


def test_who_only_waits_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTIONS", 2)

    async def story(running: Running) -> None:
        first, second = await running.open(), await running.open()
        for reader, writer in (first, second):
            writer.write(request("/"))
            await reply(reader)
        # Both have been served and wait: the one that waits longer goes.
        assert (await running.post("/third")).status == 200
        assert await first[0].read() == b""
        second[1].write(request("/again"))
        assert (await reply(second[0])).body == b"/again {}"
        second[1].close()

    play(tmp_path, story)


def test_who_works_does_not_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTIONS", 1)
    works, go_on = asyncio.Event(), asyncio.Event()

    async def held(asked: Request) -> Response:
        works.set()
        await go_on.wait()
        return Response(HTTPStatus.OK, b"done")

    async def perform() -> None:
        async with asyncio.timeout(120), serving(tmp_path, held) as running:
            reader, writer = await running.open()
            writer.write(request("/"))
            await works.wait()
            with pytest.raises((asyncio.IncompleteReadError, OSError)):
                await running.post("/second")
            go_on.set()
            assert (await reply(reader)).body == b"done"
            writer.close()

    asyncio.run(perform())


def test_what_is_under_way_is_answered_at_the_end(tmp_path: Path) -> None:
    works = asyncio.Event()

    async def slow(asked: Request) -> Response:
        works.set()
        await asyncio.sleep(0.3)
        return Response(HTTPStatus.OK, b"late")

    async def perform() -> None:
        async with asyncio.timeout(120):
            async with serving(tmp_path, slow) as running:
                reader, writer = await running.open()
                writer.write(request("/"))
                await works.wait()
            assert (await reply(reader)).body == b"late"
            writer.close()
            with pytest.raises(ConnectionRefusedError):
                await running.post("/")

    asyncio.run(perform())


def test_without_tls_there_is_no_answer(tmp_path: Path) -> None:
    async def story(running: Running) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(request("/"))
        found = await reader.read()
        assert not found.startswith(b"HTTP")
        writer.close()

    play(tmp_path, story)


def test_only_http_1_is_offered(tmp_path: Path) -> None:
    async def story(running: Running) -> None:
        running.context.set_alpn_protocols(["h2", "http/1.1"])
        _, writer = await running.open()
        assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
        writer.close()

    play(tmp_path, story)


def test_another_certificate_is_served_as_soon_as_it_is_there(tmp_path: Path) -> None:
    async def story(running: Running) -> None:
        _, kept = old = await running.open()
        other = trustme.CA()
        write_certificate(tmp_path, other)
        assert running.certificates.refresh()
        assert not running.certificates.refresh()
        assert running.certificates.trusted == other.cert_pem.bytes()
        with pytest.raises(ssl.SSLCertVerificationError):
            await running.open()
        # A connection that is open goes on.
        kept.write(request("/kept"))
        assert (await reply(old[0])).status == 200
        kept.close()
        running.context = trusting(other)
        assert (await running.post("/new")).status == 200

    play(tmp_path, story)


@pytest.mark.parametrize("broken", ["tls.crt", "tls.key", "both"])
def test_what_is_half_replaced_is_not_served(tmp_path: Path, broken: str) -> None:
    async def story(running: Running) -> None:
        before = {name: (tmp_path / name).read_bytes() for name in ("tls.crt", "tls.key")}
        write_certificate(tmp_path, trustme.CA())
        if broken == "both":
            (tmp_path / "tls.crt").unlink()
            (tmp_path / "tls.key").write_bytes(b"nothing of the kind")
        else:
            (tmp_path / broken).write_bytes(before[broken])
        assert not running.certificates.refresh()
        assert (await running.post("/old")).status == 200

    play(tmp_path, story)


def test_clients_can_be_asked_for_a_certificate(tmp_path: Path) -> None:
    async def perform() -> None:
        async with (
            asyncio.timeout(120),
            serving(tmp_path, echo, client_authority="clients.crt") as running,
        ):
            with pytest.raises((OSError, asyncio.IncompleteReadError)):
                await running.post("/nobody")
            running.context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
            assert (await running.post("/somebody")).status == 200

    asyncio.run(perform())
