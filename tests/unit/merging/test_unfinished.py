"""The state file of an unfinished update."""

from __future__ import annotations

from capsmith.merging.shared_file import ConflictLabels
from capsmith.merging.unfinished import Touched, Unfinished

DIGEST = "sha256:" + 64 * "0"


def test_a_state_is_read_as_it_was_written() -> None:
    state = Unfinished(
        ConflictLabels("yours", "before", "capsmith"),
        ("Makefile",),
        {"Makefile": Touched(DIGEST, "", 0o640)},
        {".capsmith/lock.yaml": DIGEST},
    )
    assert Unfinished.load(state.dump(), "state.json") == state
