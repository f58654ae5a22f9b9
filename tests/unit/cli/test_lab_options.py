"""Options of `capsmith lab` that are refused before anything starts."""

from __future__ import annotations

import sys

import pytest
from click.testing import CliRunner

from capsmith.cli.lab import execute, up


@pytest.mark.skipif(sys.platform != "linux", reason="a lab needs Linux")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--feature-gates", "RuntimeSDK"], "has the form NAME=true,OTHER=false"),
        (["--feature-gates", "RuntimeSDK=yes"], "has the form NAME=true,OTHER=false"),
        (["--feature-gates", "RuntimeSDK=true", "--kind"], "a core of its own"),
        (["--kind", "--kubeconfig", "file"], "exclude each other"),
    ],
)
def test_options_that_contradict_are_refused(options: list[str], message: str) -> None:
    """Exit with 2 and say which option is wrong."""
    result = CliRunner().invoke(up, options)
    assert (result.exit_code, message in result.output) == (2, True)


@pytest.mark.skipif(sys.platform != "linux", reason="a lab needs Linux")
@pytest.mark.parametrize("arguments", [["--feature-gates", "RuntimeSDK", "true"], []])
def test_a_command_without_a_usable_lab_is_refused(arguments: list[str]) -> None:
    """Exit with 2 for gates of another form, and without a command."""
    assert CliRunner().invoke(execute, arguments).exit_code == 2
