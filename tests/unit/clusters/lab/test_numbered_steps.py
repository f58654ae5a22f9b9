"""The steps of a lab's start say how many there are."""

from __future__ import annotations

from capsmith.clusters.lab.supervisor import count_steps


def report(*steps: str) -> list[str]:
    found: list[str] = []
    progress = count_steps(len(steps), found.append)
    for step in steps:
        progress(step)
    return found


def test_each_step_has_its_number() -> None:
    assert report("starting etcd", "starting core") == [
        "starting etcd (1 of 2)",
        "starting core (2 of 2)",
    ]


def test_a_single_step_has_no_number() -> None:
    assert report("looking for Cluster API") == ["looking for Cluster API"]
