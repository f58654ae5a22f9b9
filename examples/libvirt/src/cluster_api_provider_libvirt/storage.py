"""The storage pool of a cluster, and its volumes: disks, cloud-init's data and console logs."""

from __future__ import annotations

import libvirt

from .connections import ignored_errors
from .xml import element, text_of

GIB = 1024**3
_NAME_DIGITS = 12


def name_briefly(id: str) -> str:
    """Return the part of an id that names a folder, or a file that is mounted.

    libvirt mounts no file whose path has more than 63 characters.
    """
    return id[:_NAME_DIGITS]


def find_pool(host: libvirt.virConnect, name: str) -> libvirt.virStoragePool | None:
    """Return the storage pool of a name, if there is one."""
    with ignored_errors(libvirt.VIR_ERR_NO_STORAGE_POOL):
        return host.storagePoolLookupByName(name)
    return None


def ensure_pool(host: libvirt.virConnect, name: str, path: str) -> None:
    """Create and start a storage pool in the folder at ``path``, unless it is active."""
    root = element(
        "pool",
        element("name", text=name),
        element("target", element("path", text=path)),
        type="dir",
    )
    pool = find_pool(host, name) or host.storagePoolDefineXML(text_of(root))
    pool.setAutostart(1)
    if not pool.isActive():
        pool.build()
        pool.create()


def delete_pool(host: libvirt.virConnect, name: str) -> None:
    """Delete a storage pool with its folder, if it exists and is empty."""
    pool = find_pool(host, name)
    if pool is None:
        return
    if pool.isActive():
        pool.destroy()
    # An earlier call may have ended after it had deleted the folder, which cannot be done twice.
    pool.build()
    pool.delete()
    pool.undefine()


def find_volume(pool: libvirt.virStoragePool, name: str) -> libvirt.virStorageVol | None:
    """Return the volume of a name, if there is one."""
    with ignored_errors(libvirt.VIR_ERR_NO_STORAGE_VOL):
        return pool.storageVolLookupByName(name)
    return None


def ensure_disk(
    pool: libvirt.virStoragePool, name: str, image: libvirt.virStorageVol, size_gib: int
) -> str:
    """Create a disk that keeps what differs from its image; return its path."""
    volume = find_volume(pool, name)
    if volume is None:
        # A disk that is smaller than its image cuts its partitions off.
        capacity = max(size_gib * GIB, image.info()[1])
        root = element(
            "volume",
            element("name", text=name),
            element("capacity", text=str(capacity)),
            element("allocation", text="0"),
            element("target", element("format", type="qcow2")),
            element(
                "backingStore",
                element("path", text=image.path()),
                element("format", type="qcow2"),
            ),
        )
        volume = pool.createXML(text_of(root))
    return volume.path()


def ensure_copy(pool: libvirt.virStoragePool, name: str, image: libvirt.virStorageVol) -> str:
    """Create a file system that is a copy of its image; return its path."""
    volume = find_volume(pool, name)
    if volume is None:
        root = element(
            "volume",
            element("name", text=name),
            element("capacity", text=str(image.info()[1])),
            element("allocation", text="0"),
            element("target", element("format", type="raw")),
        )
        volume = pool.createXMLFrom(text_of(root), image)
    check_complete(volume)
    return volume.path()


def check_complete(volume: libvirt.virStorageVol) -> None:
    """Raise libvirt's error if a copy is still being made, for a call that has ended."""
    # libvirt has no state for that, but refuses to resize such a volume.  A size below what is
    # allocated, which includes blocks of the file system, is refused too.
    _type, capacity, allocation = volume.info()
    volume.resize(max(capacity, allocation))


def ensure_content(
    host: libvirt.virConnect, pool: libvirt.virStoragePool, name: str, content: bytes
) -> str:
    """Create a volume with a content; return its path."""
    volume = find_volume(pool, name)
    if volume is None:
        root = element(
            "volume",
            element("name", text=name),
            element("capacity", text=str(len(content))),
            element("target", element("format", type="raw")),
        )
        volume = pool.createXML(text_of(root))
    # The call that created it may have ended before this.
    upload(host, volume, content)
    return volume.path()


def upload(host: libvirt.virConnect, volume: libvirt.virStorageVol, content: bytes) -> None:
    """Write a content to a volume."""
    left = memoryview(content)

    def next_part(_stream: libvirt.virStream, size: int, _opaque: object) -> bytes:
        nonlocal left
        part, left = left[:size], left[size:]
        return bytes(part)

    stream = host.newStream()
    volume.upload(stream, 0, len(content))
    stream.sendAll(next_part, None)
    stream.finish()


def delete_volumes(pool: libvirt.virStoragePool, prefix: str) -> None:
    """Delete all volumes whose names begin with a prefix."""
    if not pool.isActive():
        pool.create()
    # QEMU wrote the console log without libvirt.
    pool.refresh()
    for volume in pool.listAllVolumes():
        if volume.name().startswith(prefix):
            volume.delete()
