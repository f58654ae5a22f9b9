"""Forward SIGTERM to a process, even if the signal arrives before the process exists."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class SigtermForwarder:
    """Holds back SIGTERM until there is a process to forward it to."""

    def __init__(self) -> None:
        self.is_requested = False
        """Whether SIGTERM has arrived."""
        self._send: Callable[[], None] | None = None

    def install(self) -> None:
        """Start handling SIGTERM, even if :func:`hold_sigterm` blocked the signal in the parent."""
        signal.signal(signal.SIGTERM, self._handle)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    def forward_to(self, send: Callable[[], None]) -> None:
        """Call ``send`` for each further SIGTERM, and immediately if one has already arrived.

        ``send`` may be called twice for one signal.
        """
        self._send = send
        if self.is_requested:
            send()

    def _handle(self, *_: object) -> None:
        self.is_requested = True
        if self._send is not None:
            self._send()


@contextmanager
def hold_sigterm() -> Iterator[None]:
    """Return a context manager that blocks SIGTERM in processes started while it is open.

    The kernel discards a signal to a namespace's first process if that process does not handle it
    yet, unless the signal is blocked.  The started process must unblock it.
    """
    former = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)
