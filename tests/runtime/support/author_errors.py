"""Exceptions that only code of authors and their libraries raises."""

from __future__ import annotations


class UnprintableError(Exception):
    """An exception without a text: its ``__str__`` and ``__repr__`` fail."""

    def __str__(self) -> str:
        raise KeyError("message")

    __repr__ = __str__


class UnprintableExit(SystemExit):
    """An exit without a text."""

    def __repr__(self) -> str:
        raise KeyError("message")


class ForeignTimeout(BaseException):
    """A timeout as of gevent, which no ``except Exception`` catches."""
