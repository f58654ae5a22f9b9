"""Arguments of a manager that runs as a process, from its Deployment and from the user."""

from __future__ import annotations

from capsmith.clusters.processes.manager import choose_arguments

COMMAND = ("python", "-m", "provider")


def test_flags_of_the_deployment_are_kept() -> None:
    deployed = ("--v=2", "--page-size=50", "serve")

    assert choose_arguments(COMMAND, deployed, {}) == ["--v=2", "--page-size=50", "serve"]


def test_a_command_and_a_deployment_without_arguments() -> None:
    assert choose_arguments(["manager"], (), {"v": "4"}) == ["--v=4"]


def test_flags_of_the_user_win() -> None:
    command = (*COMMAND, "--v=5", "--page-size", "10", "-m=x")

    assert choose_arguments(command, ("--v=2", "--page-size=50", "--ttl=1m"), {}) == ["--ttl=1m"]


def test_a_value_in_a_word_of_its_own_goes_with_its_flag() -> None:
    command = (*COMMAND, "--page-size=10")
    deployed = ("--page-size", "50", "--metrics-addr", ":8080", "--leader-elect", "--v", "2")

    chosen = choose_arguments(command, deployed, {"metrics-addr": "127.0.0.1:1"})

    assert chosen == ["--leader-elect", "--v", "2", "--metrics-addr=127.0.0.1:1"]


def test_what_follows_a_flag_without_a_value_is_kept() -> None:
    command = (*COMMAND, "--debug")
    deployed = ("--leader-elect", "serve", "--debug", "all")

    assert choose_arguments(command, deployed, {"leader-elect": "false"}) == [
        "serve",
        "all",
        "--leader-elect=false",
    ]


def test_settings_of_the_run_win_over_the_user() -> None:
    command = (*COMMAND, "--metrics-addr=:8080")

    assert choose_arguments(command, (), {"metrics-addr": "127.0.0.1:1"}) == [
        "--metrics-addr=127.0.0.1:1"
    ]
