"""What a terminal shows while a command works, on pseudo-terminals."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from capsmith.progress import listen, track
from tests.terminal import Terminal, on_terminal

WORK = """
import sys
from capsmith.progress import track
from capsmith.working import show_working
with show_working(sys.argv[1], delay=0, interval=0.01):
    for name in track("reading file", ["a", "b", "c"]):
        # Goes on when the test has seen the step.
        sys.stdin.readline()
print("done")
"""
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


def work(text: str) -> list[str]:
    return [sys.executable, "-c", WORK, text]


def finish(terminal: Terminal) -> None:
    """Go through the three steps, each after it was shown."""
    for number in (1, 2, 3):
        step = f"reading file {number} of 3"
        terminal.wait_for(lambda shown, step=step: step in shown)  # type: ignore[misc]
        terminal.press_enter()
    terminal.wait_for(lambda shown: "done" in shown)
    assert terminal.process.wait() == 0


def test_a_terminal_shows_what_is_done_and_how_far_it_is() -> None:
    with on_terminal(work("Verifying acme")) as terminal:
        finish(terminal)
    assert "Verifying acme: reading file 2 of 3" in terminal.shown
    # What was drawn is removed before the results follow.
    before, _, _ = terminal.shown.rpartition("done")
    assert before.rstrip("\r\n").endswith("\x1b[2K")


def test_a_line_fits_into_60_columns() -> None:
    with on_terminal(work("Verifying " + "a" * 200)) as terminal:
        finish(terminal)
    assert "a\N{HORIZONTAL ELLIPSIS}: reading file 3 of 3" in terminal.shown
    lines = _CONTROL.sub("\n", terminal.shown).splitlines()
    assert max(map(len, lines)) <= 60
    assert not any(re.fullmatch("a+", line) for line in lines)


def test_no_colour_when_asked() -> None:
    with on_terminal(work("Verifying acme"), {"NO_COLOR": "1"}) as terminal:
        finish(terminal)
    assert re.findall(r"\x1b\[[0-9;]*m", terminal.shown) == []


@pytest.mark.parametrize("variables", [{"CAPSMITH_PROGRESS": "lines"}, {"TERM": "dumb"}])
def test_a_screen_reader_gets_lines_without_control_characters(variables: dict[str, str]) -> None:
    with on_terminal(work("Verifying \x1bacme"), variables) as terminal:
        finish(terminal)
    assert "\x1b" not in terminal.shown
    lines = terminal.shown.splitlines()
    steps = [f"Verifying \\x1bacme: reading file {number} of 3" for number in (1, 2, 3)]
    assert [line for line in lines if "file" in line] == steps
    assert lines[-1] == "done"


def test_a_pipe_gets_only_results() -> None:
    done = subprocess.run(
        work("Verifying acme"),
        input=b"\n\n\n",
        capture_output=True,
        env={**os.environ, "CAPSMITH_PROGRESS": "lines"},
    )
    assert (done.stdout, done.stderr) == (b"done\n", b"")


@pytest.mark.parametrize(("variables", "has_colour"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_of_a_report(tmp_path: Path, variables: dict[str, str], has_colour: bool) -> None:
    file = tmp_path / "infrastructure-components.yaml"
    file.write_text("a: b: c\n", encoding="utf-8")
    command = [sys.executable, "-m", "capsmith", "verify", str(file)]
    with on_terminal(command, variables) as terminal:
        terminal.wait_for(lambda shown: "capsmith verify: " in shown and shown.endswith("\n"))
        assert terminal.process.wait() == 1
    assert ("\x1b[31m" in terminal.shown) is has_colour
    # The class of a finding is a word, too.
    assert " breaks " in terminal.shown


def test_nested_steps_are_described_from_the_outermost() -> None:
    described = []
    with listen() as progress:
        for _ in track("judging release", [1, 2]):
            described += [progress.describe() for _ in track("rule", ["a", "b"])]
    assert described == [
        f"judging release {release} of 2, rule {rule} of 2" for release in (1, 2) for rule in (1, 2)
    ]
    assert progress.describe() == ""


def test_a_step_ends_when_its_loop_is_left() -> None:
    with listen() as progress:
        items = track("reading file", [1, 2, 3])
        next(items)
        assert progress.describe() == "reading file 1 of 3"
        items.close()  # type: ignore[attr-defined]
        assert progress.describe() == ""


def test_work_without_a_listener_is_not_described() -> None:
    assert list(track("reading file", [1, 2, 3])) == [1, 2, 3]
