"""Unit tests of the connections: events of domains, and connections that were lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from capsmith_runtime.infrastructure import Changes, Credentials
from capsmith_runtime.reconcile.sessions import ReportedChange

import libvirt
from cluster_api_provider_libvirt.connections import EventLoop, Hosts, HostSessions

from .infrastructure import DRIVER, Infrastructure, failure

XML = "<domain type='test'><name>{}</name><memory>1024</memory><os><type>hvm</type></os></domain>"


@dataclass(frozen=True)
class Watch:
    """A watch of a session, and what it has reported."""

    session: Hosts
    changes: Changes
    reports: asyncio.Queue[ReportedChange]

    async def next(self) -> str:
        """Return the name of the next domain that is reported."""
        async with asyncio.timeout(60):
            return (await self.reports.get()).short_id


@asynccontextmanager
async def _watch() -> AsyncIterator[Watch]:
    factory, loop = HostSessions(), asyncio.get_running_loop()
    reports: asyncio.Queue[ReportedChange] = asyncio.Queue()

    def enqueue(change: ReportedChange) -> None:
        loop.call_soon_threadsafe(reports.put_nowait, change)

    changes = Changes(enqueue)
    session = factory.open(Credentials())
    session.connect(DRIVER)
    task = asyncio.create_task(factory.watch(session, changes))
    await asyncio.sleep(0)
    yield Watch(session, changes, reports)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    factory.close(session)


def test_a_domain_that_changes_by_itself_is_reported(hosts: Infrastructure) -> None:
    first, second = (hosts.host.defineXML(XML.format(name)) for name in ("first", "second"))

    async def run() -> None:
        async with _watch() as watch:
            first.create()
            assert await watch.next() == "first"
            second.create()
            assert await watch.next() == "second"
            first.destroy()
            assert await watch.next() == "first"
            first.undefineFlags()
            assert await watch.next() == "first"
            # Its definition alone is not reported.
            hosts.host.defineXML(XML.format("first"))
            second.destroy()
            assert await watch.next() == "second"
            assert watch.reports.empty()

    asyncio.run(run())


def test_a_watch_that_was_cancelled_reports_nothing(hosts: Infrastructure) -> None:
    domain = hosts.host.defineXML(XML.format("first"))

    async def run() -> None:
        async with _watch() as former:
            pass
        async with _watch() as watch:
            domain.create()
            assert await watch.next() == "first"
            assert former.reports.empty()

    asyncio.run(run())


def test_a_lost_connection_is_opened_again_with_its_events(
    hosts: Infrastructure, monkeypatch: pytest.MonkeyPatch
) -> None:
    domain = hosts.host.defineXML(XML.format("first"))

    async def run() -> None:
        async with _watch() as watch:
            former = watch.session.connect(DRIVER)
            assert watch.session.connect(DRIVER) is former
            with monkeypatch.context() as patch:
                patch.setattr(libvirt.virConnect, "isAlive", lambda _: 0)
                new = watch.session.connect(DRIVER)
            assert new is not former
            domain.create()
            assert await watch.next() == "first"
            assert watch.reports.empty()

    asyncio.run(run())


def test_an_error_of_the_event_loop_does_not_end_the_events(
    hosts: Infrastructure, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (hosts.host.defineXML(XML.format(name)) for name in ("first", "second"))
    run_once, failed = libvirt.virEventRunDefaultImpl, threading.Event()

    def fail_once() -> int:
        if failed.is_set():
            return run_once()
        failed.set()
        raise failure("poll failed")

    async def run() -> None:
        async with _watch() as watch:
            monkeypatch.setattr(libvirt, "virEventRunDefaultImpl", fail_once)
            first.create()
            assert await watch.next() == "first"
            assert await asyncio.to_thread(failed.wait, 60)
            second.create()
            assert await watch.next() == "second"

    asyncio.run(run())


def test_the_event_loop_starts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions that connect at the same time must not run libvirt's event loop in two threads."""
    loop, locked = EventLoop(), list[bool]()
    monkeypatch.setattr(threading.Thread, "start", lambda _: locked.append(loop.lock.locked()))

    loop.start()
    loop.start()

    assert locked == [True]
