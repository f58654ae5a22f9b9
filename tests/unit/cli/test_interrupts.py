"""Signals end a command without a traceback, whatever a library makes of them."""

from __future__ import annotations

import errno
import signal

import pytest

from capsmith.cli.options import handle_exit
from capsmith.errors import Refused


def interrupted(number: signal.Signals) -> int:
    """Raise an error of a library that catches whatever its callbacks raise."""
    try:
        signal.raise_signal(number)
    except BaseException as error:
        raise ValueError(f"{type(error).__name__} in a callback") from None
    return 0


@pytest.mark.parametrize(
    ("number", "code", "shown"),
    [(signal.SIGINT, 1, "interrupted\n"), (signal.SIGTERM, 143, ""), (signal.SIGHUP, 129, "")],
)
def test_a_signal_that_a_library_turns_into_an_error(
    capsys: pytest.CaptureFixture[str], number: signal.Signals, code: int, shown: str
) -> None:
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as left:
        handle_exit(interrupted)(number)
    assert left.value.code == code
    assert capsys.readouterr().err == shown
    assert signal.getsignal(number) is before


def test_an_error_without_a_signal_stays_an_error() -> None:
    def fail() -> int:
        raise ValueError("a defect")

    with pytest.raises(ValueError, match="a defect"):
        handle_exit(fail)()


def test_a_refusal_after_a_signal_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    def refuse() -> int:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise Refused("output-saved", "saved meanwhile", file="a", hint="Run it again.")

    with pytest.raises(SystemExit):
        handle_exit(refuse)()
    assert "output-saved" in capsys.readouterr().err


def test_an_error_of_a_file_names_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> int:
        raise PermissionError(errno.EACCES, "Permission denied", "a\x1b/b.yaml")

    with pytest.raises(SystemExit) as left:
        handle_exit(fail)()
    assert left.value.code == 2
    shown = capsys.readouterr().err
    assert "a\\x1b/b.yaml: error output-unwritable: cannot be used: Permission denied" in shown


def test_an_error_of_the_output_names_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(SystemExit) as left:
        handle_exit(fail)()
    assert left.value.code == 2
    assert capsys.readouterr().err == "the report cannot be written: No space left on device\n"
