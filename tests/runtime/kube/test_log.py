"""Log lines: one line each, whatever is in them, and read back by machines."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Callable, Iterator

import pytest

from capsmith_runtime.kube import log

Lines = Callable[[], list[str]]
NASTY = 'a "quoted"\nline\twith = \x1b[31m and \u2028 and \udcff'


@pytest.fixture
def capture() -> Iterator[Callable[..., Lines]]:
    """Set logging up and read what it writes; the root logger is put back afterwards."""
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    levels = {name: logging.getLogger(name).level for name in (log.OWN, "provider")}

    def start(verbosity: int = 2, fmt: str = "text") -> Lines:
        log.configure(verbosity, fmt, ["provider"])
        stream = io.StringIO()
        (handler,) = root.handlers
        assert isinstance(handler, logging.StreamHandler)
        handler.setStream(stream)
        return lambda: stream.getvalue().splitlines()

    yield start
    root.handlers[:], _ = before
    root.setLevel(before[1])
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def test_text_line(capture: Callable[..., Lines]) -> None:
    lines = capture()
    log.get_logger("controller", kind="Widget").bind(key="a/b").info("patched", took=0.5)
    (line,) = lines()
    moment, rest = line.split(" ", 1)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", moment)
    assert rest == "INFO controller patched kind=Widget key=a/b took=0.5"


def test_json_line(capture: Callable[..., Lines]) -> None:
    lines = capture(fmt="json")
    log.get_logger("controller").warning("failed", key="a/b", tries=3, cause=ValueError("no"))
    entry = json.loads(lines()[0])
    assert entry.pop("ts")
    assert entry == {
        "level": "warning",
        "logger": "controller",
        "msg": "failed",
        "key": "a/b",
        "tries": 3,
        "cause": "no",
    }


@pytest.mark.parametrize("fmt", ["text", "json"])
def test_nothing_that_is_logged_makes_a_second_line(
    capture: Callable[..., Lines], fmt: str
) -> None:
    lines = capture(fmt=fmt)
    log.get_logger("author").info(f"message {NASTY}", value=NASTY, empty="")
    (line,) = lines()
    assert line.isprintable()
    if fmt == "json":
        assert json.loads(line)["value"] == NASTY
    else:
        value = re.search(r'value=("(?:[^"\\]|\\.)*")', line)
        assert value is not None
        assert json.loads(value[1]) == NASTY
        assert line.endswith('empty=""')


def test_values_do_not_replace_what_every_line_has(capture: Callable[..., Lines]) -> None:
    lines = capture(fmt="json")
    log.get_logger("author").info("real", level="fatal", logger="other")
    entry = json.loads(lines()[0])
    assert (entry["msg"], entry["level"], entry["logger"]) == ("real", "info", "author")


@pytest.mark.parametrize("fmt", ["text", "json"])
def test_traceback(capture: Callable[..., Lines], fmt: str) -> None:
    lines = capture(fmt=fmt)
    try:
        raise ValueError("broken")
    except ValueError as error:
        log.get_logger("controller").error("failed", exc_info=error, key="a")
    found = lines()
    if fmt == "json":
        assert json.loads(found[0])["traceback"].endswith("ValueError: broken")
        assert len(found) == 1
    else:
        assert found[0].endswith("ERROR controller failed key=a")
        assert found[-1] == "  ValueError: broken"


def test_no_line_of_a_traceback_looks_like_a_record(capture: Callable[..., Lines]) -> None:
    lines = capture(fmt="text")
    try:
        raise ValueError("no\n2026-01-02T03:04:05.000Z INFO forged\r\x1b[2J")
    except ValueError as error:
        log.get_logger("controller").error("failed", exc_info=error)
    _, *trace = lines()
    assert trace[0] == "  Traceback (most recent call last):"
    assert trace[-1] == "  2026-01-02T03:04:05.000Z INFO forged\\r\\u001b[2J"
    assert all(line.startswith("  ") and line.isprintable() for line in trace)


def test_bind_leaves_the_first_logger_alone(capture: Callable[..., Lines]) -> None:
    lines = capture()
    first = log.get_logger("controller", kind="Widget")
    first.bind(key="a").info("one")
    first.info("two")
    assert [line.split(" ", 3)[3] for line in lines()] == [
        "one kind=Widget key=a",
        "two kind=Widget",
    ]


@pytest.mark.parametrize(("verbosity", "expected"), [(2, ["info"]), (4, ["debug", "info"])])
def test_verbosity(capture: Callable[..., Lines], verbosity: int, expected: list[str]) -> None:
    lines = capture(verbosity)
    log.get_logger("controller").debug("debug")
    log.get_logger("controller").info("info")
    # Requests of the HTTP library are counted in metrics; a line for each would drown the rest.
    logging.getLogger("httpx2").info("HTTP Request")
    assert [line.rsplit(" ", 1)[1] for line in lines()] == expected


def test_only_the_runtime_and_the_author_log_debug_lines(capture: Callable[..., Lines]) -> None:
    """Cloud SDKs write whole requests, with credentials and bootstrap data."""
    lines = capture(4)
    for name in ("botocore.endpoint", "provider_of_others", ""):
        logging.getLogger(name).debug("Authorization: secret")
    logging.getLogger("provider.cloud").debug("of the author")
    log.get_logger("author").debug("of the runtime")
    assert [line.split(" ", 2)[2] for line in lines()] == [
        "provider.cloud of the author",
        "author of the runtime",
    ]


def test_a_library_that_knows_nothing_of_values(capture: Callable[..., Lines]) -> None:
    lines = capture()
    logging.getLogger("library").warning("plain %s", "text")
    assert lines()[0].endswith("WARNING library plain text")


@pytest.mark.parametrize("fmt", ["text", "json"])
def test_no_line_is_as_long_as_what_a_user_wrote(capture: Callable[..., Lines], fmt: str) -> None:
    """The API server repeats invalid values in its messages, and each retry would log a MiB."""
    text = "begin" + "\u2028" * 2**17 + "end"
    lines = capture(fmt=fmt)
    try:
        raise ValueError(text)
    except ValueError as error:
        log.get_logger("author").error(
            text, value=text, values=[text], cause=error, exc_info=error, key="a/b"
        )
    found = "\n".join(lines())
    assert len(found) < 600_000
    assert all(part in found for part in ("begin", "end", "a/b", "ValueError", "131080"))
