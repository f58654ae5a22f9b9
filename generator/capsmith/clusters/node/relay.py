"""`python -m capsmith.clusters.node.relay PID PORT`: make a node's port available on the host.

The socket that accepts connections belongs to the host's network, and the sockets that the relay
opens belong to the network of process PID.  The host therefore needs no extra interface or route.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
import sys
from contextlib import suppress

_CLONE_NEWNET = 0x40000000
_CHUNK = 64 * 1024
_LOCAL = "127.0.0.1"


def main() -> None:
    """Accept connections on the host until the process is killed."""
    init, port = int(sys.argv[1]), int(sys.argv[2])
    listener = socket.create_server((_LOCAL, port), backlog=128)
    enter_network(init)
    asyncio.run(serve(listener, port))


def enter_network(pid: int) -> None:
    """Make this thread create all later sockets in a process's network namespace.

    Raises OSError if the kernel refuses.
    """
    descriptor = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(descriptor, _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "the network of the node cannot be entered")
    finally:
        os.close(descriptor)


async def serve(listener: socket.socket, port: int) -> None:
    """Forward each of ``listener``'s clients to a port in the node's network, until cancelled."""

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner, outer = await asyncio.open_connection(_LOCAL, port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_copy(reader, outer), _copy(inner, writer))

    server = await asyncio.start_server(connect, sock=listener)
    async with server:
        await server.serve_forever()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(_CHUNK):
            target.write(data)
            await target.drain()
    with suppress(OSError):
        target.close()


if __name__ == "__main__":
    main()
