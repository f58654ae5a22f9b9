"""Faults of a simulated cloud, selected by an environment variable::

    CAPSMITH_SIMULATED_FAULTS=error=0.2,late=3,seed=7

The value is a comma-separated list of the fields of :class:`Faults`, or ``@`` and the path to a
file with such a list. The file is read at each call, so faults can begin and end while a manager is
running.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

from capsmith_runtime.errors import ReconcileError

VARIABLE: Final = "CAPSMITH_SIMULATED_FAULTS"
HANG_SECONDS: Final = 3600.0
RETRY_SECONDS: Final = 2.0
_POLL_SECONDS: Final = 0.01
_CREATE: Final = ("create", "allocate")
_DELETE: Final = ("delete", "release")
_CALLS: Final = ("find", *_CREATE, *_DELETE, "scale")
_inside = threading.local()


class CloudUnavailable(ReconcileError):
    """A simulated failure of a call, which may still have taken effect."""

    def __init__(self, message: str) -> None:
        super().__init__("CloudUnavailable", message)


class RateLimited(ReconcileError):
    """A simulated rejection of a call with status 429; the call had no effect."""

    def __init__(self) -> None:
        super().__init__("RateLimited", "429 Too Many Requests", retry_after=RETRY_SECONDS)


class LoginRefused(ReconcileError):
    """A simulated rejection of a call with status 401; the call had no effect."""

    def __init__(self) -> None:
        super().__init__("LoginRefused", "401 Unauthorized: the cloud refuses the credentials")


class NoCapacity(ReconcileError):
    """A simulated rejection of a creation, because no capacity is left; it had no effect."""

    def __init__(self) -> None:
        super().__init__("NoCapacity", "the cloud has no capacity left", retry_after=RETRY_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """The faults that a simulated cloud injects into calls.

    The rates are shares of calls, from 0 to 1; ``seed`` decides which calls fail.
    """

    hang: float = 0.0
    """Share of calls that hang until the fault is switched off, and then fail.

    A call hangs for at most an hour.
    """
    error: float = 0.0
    """Share of calls that fail with status 500."""
    limit: float = 0.0
    """Share of calls that are rejected with status 429."""
    refuse: float = 0.0
    """Share of calls that are rejected with status 401, as with wrong credentials."""
    lost: float = 0.0
    """Share of calls that take effect but whose response is lost."""
    slow: float = 0.0
    """Maximum duration of a call in seconds."""
    late: int = 0
    """Number of searches that fail to find a newly created resource."""
    vanish: float = 0.0
    """Share of successful searches after which the found resource is deleted."""
    full: float = 0.0
    """Share of creations and allocations that are refused because no capacity is left."""
    seed: int = 0
    """Seed that decides which calls fail; the same seed always selects the same calls."""

    def __post_init__(self) -> None:
        for name in ("hang", "error", "limit", "refuse", "lost", "vanish", "full"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} must be between 0 and 1")
        if self.slow < 0.0 or self.late < 0:
            raise ValueError("slow and late must not be negative")

    @classmethod
    def parse(cls, text: str) -> Faults:
        """Parse a list such as ``error=0.2,late=3``.

        Raises ValueError for any other string.
        """
        kinds: dict[str, type[int | float]] = {
            each.name: int if each.name in ("late", "seed") else float for each in fields(cls)
        }
        values: dict[str, Any] = {}
        for item in filter(None, map(str.strip, text.split(","))):
            name, sign, value = item.partition("=")
            if name not in kinds or not sign:
                raise ValueError(f"{item!r} is not one of {', '.join(kinds)} with = and a number")
            values[name] = kinds[name](value)
        return cls(**values)

    def __str__(self) -> str:
        values = ((each.name, getattr(self, each.name)) for each in fields(self))
        return ",".join(f"{name}={value}" for name, value in values if value)


NONE: Final = Faults()


def inject_faults(client: object, folder: Path) -> None:
    """Wrap a client's methods in place to inject the faults in ``CAPSMITH_SIMULATED_FAULTS``.

    The methods ``find*``, ``create*``, ``allocate*``, ``delete*``, ``release*`` and ``scale*`` are
    wrapped; they must be synchronous and take the external id as their first argument. If the
    environment variable is not set, the client is left unchanged. Newly created resources that
    searches do not find yet are recorded in ``folder``, which all clients of the same cloud must
    share. If one of these methods calls another, faults are injected only into the outer call.
    """
    setting = os.environ.get(VARIABLE)
    if setting:
        _Injector(client, setting, folder / "late").wrap()


class _Injector:
    """Wraps a client's methods."""

    def __init__(self, client: object, setting: str, late: Path) -> None:
        self._client = client
        self._setting = setting
        self._late = late
        self._calls: Counter[tuple[str, str]] = Counter()
        late.mkdir(parents=True, exist_ok=True)

    def wrap(self) -> None:
        for name in dir(self._client):
            if name.startswith(_CALLS):
                setattr(self._client, name, self._wrapped(name, getattr(self._client, name)))

    def _wrapped(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        verb = next(each for each in _CALLS if name.startswith(each))

        def call(*args: Any, **kwargs: Any) -> Any:
            run = partial(method, *args, **kwargs)
            # A method may call another one of the same client: the fault must affect the outer call
            # as a whole.
            if getattr(_inside, "call", False):
                return run()
            with _outermost():
                return self._call(verb, name, str((*args, *kwargs.values())[0]), run)

        return call

    def _call(self, verb: str, name: str, key: str, run: Callable[[], Any]) -> Any:
        faults = self._faults()
        self._calls[name, key] += 1
        # Derived from the call alone: threads may make calls in any order, and every run must
        # disturb the same ones.
        chance = Random(f"{faults.seed}/{name}/{key}/{self._calls[name, key]}")
        self._fail_before(faults, chance)
        if verb in _CREATE and faults.full and chance.random() < faults.full:
            if verb == "allocate":
                return None
            raise NoCapacity
        pause = chance.uniform(0.0, faults.slow) / 2
        time.sleep(pause)
        result = self._run(verb, name.removeprefix(verb), key, run, faults, chance)
        time.sleep(pause)
        # After the call: the resource exists, but its creator does not know it.
        if chance.random() < faults.lost:
            raise CloudUnavailable("the connection was reset")
        return result

    def _fail_before(self, faults: Faults, chance: Random) -> None:
        if chance.random() < faults.hang:
            end = time.monotonic() + HANG_SECONDS
            while time.monotonic() < end and self._faults().hang:
                time.sleep(_POLL_SECONDS)
            raise CloudUnavailable("the connection timed out")
        if chance.random() < faults.error:
            raise CloudUnavailable("500 Internal Server Error")
        if chance.random() < faults.limit:
            raise RateLimited
        # Draw a number only for this fault, so that seeds still select the same calls without it.
        if faults.refuse and chance.random() < faults.refuse:
            raise LoginRefused

    def _run(
        self,
        verb: str,
        noun: str,
        key: str,
        run: Callable[[], Any],
        faults: Faults,
        chance: Random,
    ) -> Any:
        """Make the call like a cloud whose lists lag behind and whose resources disappear."""
        mark = self._late / f"{noun}-{key}"
        # Only a new resource is listed late; creating an existing one again must not hide it.
        if verb in _CREATE and faults.late and self._other("find", noun, key) is None:
            mark.write_text(str(faults.late))
        if verb in _DELETE:
            mark.unlink(missing_ok=True)
        if verb == "find" and _is_hidden(mark):
            return None
        result = run()
        if verb == "find" and result is not None and chance.random() < faults.vanish:
            self._other("delete", noun, key)
        return result

    def _other(self, verb: str, noun: str, key: str) -> Any:
        return getattr(self._client, f"{verb}{noun}")(key)

    def _faults(self) -> Faults:
        if not self._setting.startswith("@"):
            return Faults.parse(self._setting)
        try:
            return Faults.parse(Path(self._setting[1:]).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return NONE


@contextmanager
def _outermost() -> Iterator[None]:
    _inside.call = True
    try:
        yield
    finally:
        _inside.call = False


def _is_hidden(mark: Path) -> bool:
    """Count a search, and return whether the resource is not listed yet."""
    try:
        left = int(mark.read_text() or 0)
    except FileNotFoundError:
        return False
    if left <= 1:
        mark.unlink(missing_ok=True)
    else:
        mark.write_text(str(left - 1))
    return left > 0
