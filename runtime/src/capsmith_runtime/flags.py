"""Command line flags of the manager that an author declares in provider.yaml."""

from __future__ import annotations

import argparse
import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

from capsmith_runtime.options import parse_duration

T = TypeVar("T")
_flags: Final[dict[str, Flag[Any]]] = {}


class Flag(ABC, Generic[T]):
    """A flag whose value an operator sets when the manager starts."""

    def __init__(self, name: str, *, default: T, description: str = "") -> None:
        """Declare a flag; ``name`` is without the leading hyphens.

        Raises ValueError if another flag already has the name.
        """
        if name in _flags:
            raise ValueError(f"declared twice: {name!r}")
        self.name = name
        self.default = default
        self.description = description
        self._value = default
        _flags[name] = self

    @property
    def value(self) -> T:
        """Return the value from the command line, or the default if the flag is not given there.

        It does not change while a manager runs.
        """
        return self._value

    @abstractmethod
    def parse(self, text: str) -> T:
        """Convert a command line argument to a value of the flag.

        Raises ValueError if the argument is invalid.
        """

    def list_other_values(self) -> Sequence[T]:
        """Return values other than the default for conformance tests to try; by default, none."""
        return ()

    @contextlib.contextmanager
    def set_for_test(self, value: T) -> Iterator[None]:
        """Return a context manager that sets the value for the duration of its block; for tests."""
        before, self._value = self._value, value
        try:
            yield
        finally:
            self._value = before


class StringFlag(Flag[str]):
    """A command-line flag of the manager, with a string as its value."""

    def __init__(
        self, name: str, *, default: str = "", description: str = "", choices: Sequence[str] = ()
    ) -> None:
        """Declare a flag; if there are ``choices``, no other values are valid."""
        super().__init__(name, default=default, description=description)
        self.choices = tuple(choices)

    def parse(self, text: str) -> str:
        """Return the string itself; raises ValueError if it is not one of the choices."""
        if self.choices and text not in self.choices:
            raise ValueError(f"not one of {', '.join(self.choices)}: {text!r}")
        return text

    def list_other_values(self) -> Sequence[str]:
        """Return the choices other than the default."""
        return [each for each in self.choices if each != self.default]


class BooleanFlag(Flag[bool]):
    """A flag that is ``true`` or ``false``; without a value it is true."""

    def __init__(self, name: str, *, default: bool = False, description: str = "") -> None:
        super().__init__(name, default=default, description=description)

    def parse(self, text: str) -> bool:
        """Return whether the string is ``true``; raises ValueError unless it is true or false."""
        if text not in ("true", "false"):
            raise ValueError(f"neither true nor false: {text!r}")
        return text == "true"

    def list_other_values(self) -> Sequence[bool]:
        """Return the opposite of the default."""
        return [not self.default]


N = TypeVar("N", bound=float)


class _BoundedFlag(Flag[N]):
    """A flag whose value is a number between two inclusive bounds."""

    def __init__(
        self,
        name: str,
        *,
        default: N,
        description: str = "",
        minimum: N | None = None,
        maximum: N | None = None,
    ) -> None:
        """Declare a flag; a bound of None means that there is no limit in that direction."""
        super().__init__(name, default=default, description=description)
        self.minimum, self.maximum = minimum, maximum

    def list_other_values(self) -> Sequence[N]:
        """Return the bounds that differ from the default."""
        bounds = (self.minimum, self.maximum)
        return [each for each in bounds if each is not None and each != self.default]

    def _check(self, number: N, text: str) -> N:
        if self.minimum is not None and number < self.minimum:
            raise ValueError(f"less than {self.minimum}: {text!r}")
        if self.maximum is not None and number > self.maximum:
            raise ValueError(f"greater than {self.maximum}: {text!r}")
        return number


class IntegerFlag(_BoundedFlag[int]):
    """A command-line flag of the manager, with an integer as its value."""

    def parse(self, text: str) -> int:
        """Return the integer; raises ValueError if it is not one, or is out of bounds."""
        return self._check(int(text), text)


class NumberFlag(_BoundedFlag[float]):
    """A command-line flag of the manager, with a finite number as its value."""

    def parse(self, text: str) -> float:
        """Return the number; raises ValueError if it is not finite or out of bounds."""
        number = float(text)
        if not math.isfinite(number):
            raise ValueError(f"not a finite number: {text!r}")
        return self._check(number, text)


class DurationFlag(Flag[float]):
    """A flag such as ``1m30s``, whose value is in seconds."""

    def parse(self, text: str) -> float:
        """Return the number of seconds in a duration such as ``1m30s``."""
        return parse_duration(text)


def list_flags() -> list[Flag[Any]]:
    """Return the declared flags, sorted by name."""
    return [_flags[name] for name in sorted(_flags)]


class AuthorFlags:
    """The flags that provider.yaml declares, for the manager's command line."""

    name: Final = "author"

    def __init__(self, title: str, flags: Sequence[Flag[Any]]) -> None:
        """Collect the flags; ``title`` is their heading in ``--help``."""
        self._title = title
        self.flags = tuple(flags)

    def add(self, parser: argparse.ArgumentParser) -> None:
        """Add the flags to a parser, with their descriptions and defaults."""
        group = parser.add_argument_group(self._title)
        for flag in self.flags:
            # Like the manager's own switches, these accept --name as well as --name=true.
            switch: dict[str, Any] = (
                {"nargs": "?", "const": True} if isinstance(flag, BooleanFlag) else {}
            )
            group.add_argument(
                f"--{flag.name}",
                default=flag.default,
                type=_create_parser(flag),
                metavar=type(flag).__name__.removesuffix("Flag").upper(),
                help=_describe(flag),
                **switch,
            )

    def read(self, found: argparse.Namespace) -> Mapping[str, object]:
        """Set the value of each flag, and return the values, keyed by name."""
        values = {flag.name: getattr(found, flag.name.replace("-", "_")) for flag in self.flags}
        for flag in self.flags:
            flag._value = values[flag.name]
        return values


def _create_parser(flag: Flag[T]) -> Callable[[str], T]:
    def parse(text: str) -> T:
        try:
            return flag.parse(text)
        except ValueError as error:
            # argparse shows only the messages of its own exception.
            raise argparse.ArgumentTypeError(str(error)) from error

    return parse


def _describe(flag: Flag[T]) -> str:
    default = flag.default
    if isinstance(default, bool):
        shown = str(default).lower()
    elif isinstance(flag, DurationFlag):
        shown = f"{default:g}s"
    else:
        shown = str(default) or "empty"
    text = f"{flag.description} (default: {shown})".strip()
    if isinstance(flag, StringFlag) and flag.choices:
        text = f"{text} (one of {', '.join(flag.choices)})"
    return text.replace("%", "%%")
