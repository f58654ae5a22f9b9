"""libvirt's built-in test driver in place of hosts, for the conformance kit and for unit tests."""

from __future__ import annotations

import functools
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from capsmith_runtime.testing.faults import Faults

import libvirt
from cluster_api_provider_libvirt import storage
from cluster_api_provider_libvirt.connections import Hosts

DRIVER = "test:///default"
"""All connections of a process share its hosts, as long as one of them is open."""
IMAGES, IMAGE = "default", "node.qcow2"
"""Those of config/samples."""

_OPEN = libvirt.open
_CALLS = (
    "defineXML",
    "lookupByUUIDString",
    "networkDefineXML",
    "networkLookupByName",
    "storagePoolDefineXML",
    "storagePoolLookupByName",
)


def failure(message: str) -> libvirt.libvirtError:
    """Return an error; it would have the code of the last one of this thread."""
    libvirt.virResetLastError()
    return libvirt.libvirtError(message)


class FaultInjector:
    """Lets calls of connections fail, but not those of an observer."""

    def __init__(self) -> None:
        self.faults = Faults()
        self._thread = threading.local()

    def install(self) -> None:
        """Reach all connections."""
        for name in _CALLS:
            setattr(libvirt.virConnect, name, self._wrapped(getattr(libvirt.virConnect, name)))

    @contextmanager
    def observing(self) -> Iterator[None]:
        """Let no call of this thread fail."""
        self._thread.observes = True
        try:
            yield
        finally:
            self._thread.observes = False

    def _wrapped(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(*args: Any) -> Any:
            if getattr(self._thread, "observes", False):
                return method(*args)
            self._fail_before()
            result = method(*args)
            if random.random() < self.faults.lost:
                raise failure("the connection was reset")
            return result

        return call

    def _fail_before(self) -> None:
        hangs = self.faults.hang
        while self.faults.hang:
            time.sleep(0.01)
        if hangs or random.random() < self.faults.error:
            raise failure("the connection timed out")
        time.sleep(random.uniform(0, self.faults.slow))


_INJECTOR = FaultInjector()
_INJECTOR.install()


class Infrastructure:
    """A test double of hosts, empty for each test."""

    def __init__(self, folder: Path) -> None:
        """The test driver keeps nothing in the folder."""
        self.host = _OPEN(DRIVER)
        self.contents: dict[str, bytes] = {}
        """What was uploaded, by the path of the volume."""

    def start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let connections use the test driver, and delete what it has."""
        monkeypatch.setattr(libvirt, "open", lambda _uri: _OPEN(DRIVER))
        # The test driver has no streams, resizes nothing, and copies within a pool only.
        monkeypatch.setattr(storage, "upload", self._upload)
        monkeypatch.setattr(storage, "check_complete", lambda _volume: None)
        monkeypatch.setattr(libvirt.virStoragePool, "createXMLFrom", _create)
        self.simulate(Faults())
        with _INJECTOR.observing():
            self._clear()
            storage.ensure_pool(self.host, IMAGES, "/images")
            pool = self.host.storagePoolLookupByName(IMAGES)
            capacity = "<capacity unit='GiB'>2</capacity>"
            pool.createXML(f"<volume><name>{IMAGE}</name>{capacity}</volume>")

    def simulate(self, faults: Faults) -> None:
        """Let calls of the reconcilers fail from now on."""
        if faults.vanish:
            raise NotImplementedError("domains vanish by remove_server")
        if faults.limit:
            raise NotImplementedError("libvirt refuses no requests")
        if faults.late:
            raise NotImplementedError("libvirt lists what exists at once")
        _INJECTOR.faults = faults

    def servers(self) -> list[str]:
        """Return the UUID of each domain."""
        return sorted(each.UUIDString() for each in self.host.listAllDomains())

    def remove_server(self, name: str) -> None:
        """Delete a domain without the reconciler."""
        with _INJECTOR.observing():
            domain = self.host.lookupByUUIDString(name)
        domain.destroy()
        domain.undefineFlags()

    def clusters(self) -> list[str]:
        """Return the name of each storage pool, except that of images."""
        names = (each.name() for each in self.host.listAllStoragePools())
        return sorted(name for name in names if name != IMAGES)

    def networks(self) -> list[str]:
        """Return the name of each network."""
        return sorted(each.name() for each in self.host.listAllNetworks())

    def volumes(self) -> list[str]:
        """Return the name of each volume, except of the image."""
        pools = self.host.listAllStoragePools()
        names = (each.name() for pool in pools for each in pool.listAllVolumes())
        return sorted(name for name in names if name != IMAGE)

    def _upload(
        self, _host: libvirt.virConnect, volume: libvirt.virStorageVol, content: bytes
    ) -> None:
        self.contents[volume.path()] = content

    def _clear(self) -> None:
        for domain in self.host.listAllDomains():
            if domain.isActive():
                domain.destroy()
            domain.undefineFlags()
        for network in self.host.listAllNetworks():
            if network.isActive():
                network.destroy()
            network.undefine()
        for pool in self.host.listAllStoragePools():
            if not pool.isActive():
                pool.create()
            for volume in pool.listAllVolumes():
                volume.delete()
            pool.destroy()
            pool.undefine()


def _create(
    pool: libvirt.virStoragePool, description: str, _image: libvirt.virStorageVol
) -> libvirt.virStorageVol:
    return pool.createXML(description)


@functools.cache
def open_session() -> Hosts:
    """Return the session of all unit tests."""
    return Hosts()
