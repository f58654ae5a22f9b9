"""Structured logging on top of the standard library: `log.info("message", key="value")`."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterable, MutableMapping
from typing import Any, Final

from capsmith_runtime.kube.hidden_values import redact

OWN: Final = "capsmith_runtime"
"""Parent of the runtime's loggers; log lines omit this prefix."""
_STANDARD = frozenset({"exc_info", "stack_info", "stacklevel", "extra"})
_DEBUG_VERBOSITY = 4
_VALUE_CHARACTERS: Final = 8192
"""Maximum length of a message or value: a user's text of a MiB may be in an error."""
_TRACE_CHARACTERS: Final = 65536
"""Maximum length of a traceback, which ends with the message of its error."""


class Logger(logging.LoggerAdapter[logging.Logger]):
    """A logger with structured values, which come from each call's keyword arguments and `bind`."""

    def __init__(self, logger: logging.Logger, values: dict[str, object]) -> None:
        super().__init__(logger, None)
        self._values = values

    def bind(self, **values: object) -> Logger:
        """Return a logger that adds these values to every record."""
        return Logger(self.logger, {**self._values, **values})

    # The standard library accepts `level` as a keyword; here that name is left free for a value.
    def log(  # type: ignore[override]
        self, level: int, msg: object, /, *args: object, **values: Any
    ) -> None:
        """Log as in the standard library, but allow a value called `level`."""
        if self.isEnabledFor(level):
            text, passed = self.process(msg, values)
            self.logger.log(level, text, *args, **passed)

    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        """Move unknown keyword arguments into the log record's fields."""
        values = {**self._values, **{k: v for k, v in kwargs.items() if k not in _STANDARD}}
        passed = {k: v for k, v in kwargs.items() if k in _STANDARD}
        passed["extra"] = {**(passed.get("extra") or {}), "values": values}
        return msg, passed


def get_logger(name: str, **values: object) -> Logger:
    """Return a structured logger of the runtime."""
    return Logger(logging.getLogger(f"{OWN}.{name}"), values)


def read_message(error: BaseException) -> str:
    """Return an error's message without credentials, or a replacement if it has none.

    The exceptions of authors and their libraries have any ``__str__``, which may fail.
    """
    try:
        return redact(str(error))
    except Exception as failure:
        return f"no message, because __str__ raised {type(failure).__name__}"


def describe_error(error: BaseException) -> str:
    """Return an error's type and message, but not its other arguments, which may contain data."""
    return f"{type(error).__name__}: {read_message(error)}"


def configure(verbosity: int = 2, fmt: str = "text", packages: Iterable[str] = ()) -> None:
    """Configure logging to standard error, formatted as `text` or `json`.

    From verbosity 4 on, debug records of the runtime and of `packages`, the author's packages, are
    logged.  Debug records of other libraries are never logged: cloud SDKs log whole requests,
    including credentials and bootstrap data.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if fmt == "json" else TextFormatter())
    root = logging.getLogger()
    # Replace handlers that a library installed when it was imported: they would log each record
    # again.
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    _levels.packages = (OWN, *packages)
    set_verbosity(verbosity)
    # The HTTP library logs every request at INFO.
    for library in ("httpx2", "httpcore2"):
        logging.getLogger(library).setLevel(logging.WARNING)


class _Levels:
    """The verbosity of this process, whose logging is global as well."""

    packages: tuple[str, ...] = (OWN,)
    verbosity: int = 2


_levels: Final = _Levels()


def set_verbosity(verbosity: int) -> None:
    """Change the verbosity of a process whose logging is configured."""
    _levels.verbosity = verbosity
    level = logging.DEBUG if verbosity >= _DEBUG_VERBOSITY else logging.INFO
    for package in _levels.packages:
        logging.getLogger(package).setLevel(level)


def get_verbosity() -> int:
    """Return the current log verbosity."""
    return _levels.verbosity


class TextFormatter(logging.Formatter):
    """Formats records as `2006-01-02T15:04:05.000Z INFO controller message key="value"`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a single line, followed by its indented traceback."""
        parts = [
            _timestamp(record),
            record.levelname,
            _name(record),
            _one_line(_shorten(record.getMessage())),
        ]
        parts += [f"{key}={_quoted(value)}" for key, value in _values(record).items()]
        line = " ".join(parts)
        if not record.exc_info:
            return line
        trace = _shorten(self.formatException(record.exc_info), _TRACE_CHARACTERS)
        return f"{line}\n{_indent(trace)}"


class JsonFormatter(logging.Formatter):
    """Formats each record as one JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record, its values and its traceback as one JSON object."""
        entry: dict[str, object] = {
            "ts": _timestamp(record),
            "level": record.levelname.lower(),
            "logger": _name(record),
            "msg": _shorten(record.getMessage()),
        }
        for key, value in _values(record).items():
            # A value must not replace the time or the level of its record.
            entry.setdefault(key, _limited(value))
        if record.exc_info:
            trace = self.formatException(record.exc_info)
            entry["traceback"] = _shorten(trace, _TRACE_CHARACTERS)
        return redact(json.dumps(entry, default=str))


def _name(record: logging.LogRecord) -> str:
    return record.name.removeprefix(f"{OWN}.")


def _values(record: logging.LogRecord) -> dict[str, object]:
    return getattr(record, "values", {})


def _timestamp(record: logging.LogRecord) -> str:
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{moment}.{int(record.msecs):03d}Z"


def _shorten(text: str, limit: int = _VALUE_CHARACTERS) -> str:
    """Return the text without credentials.

    Returns its beginning and end if it has more characters than ``limit``.
    """
    # First: the end of what is left out could be in the middle of a value.
    text = redact(text)
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]} ... ({len(text)} characters) ... {text[-half:]}"


def _limited(value: object) -> object:
    """Return a value of a JSON entry, as a shortened text if it would be long."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return value if len(text) <= _VALUE_CHARACTERS else _shorten(text)


def _one_line(text: str) -> str:
    """Escape line breaks and terminal control codes."""
    return text if text.isprintable() else json.dumps(text)[1:-1].replace('\\"', '"')


def _indent(trace: str) -> str:
    """Indent all lines and escape terminal control codes.

    The message of an exception may contain a user's text, whose lines must not look like records.
    """
    return "\n".join(f"  {_one_line(line)}" for line in trace.split("\n"))


def _quoted(value: object) -> str:
    text = _shorten(str(value))
    plain = text.isprintable() and text and not any(char in text for char in ' ="')
    return text if plain else json.dumps(text)
