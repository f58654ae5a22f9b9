"""State for thousands of tenants is found, kept and forgotten in constant time for each."""

from __future__ import annotations

from functools import partial

from capsmith_runtime.reconcile.idle_entries import IdleEntries


class Entry:
    """An entry that counts how often it is asked."""

    checks = 0

    def __init__(self, idle: bool) -> None:
        self.idle = idle

    @property
    def is_idle(self) -> bool:
        Entry.checks += 1
        return self.idle


def fill(entries: IdleEntries[Entry], prefix: str, count: int, *, idle: bool) -> list[Entry]:
    return [entries.get(f"{prefix}-{number}", partial(Entry, idle)) for number in range(count)]


def test_a_new_entry_costs_the_same_however_many_there_are() -> None:
    """With 2,000 clusters, the first reconcile of all of them made two million checks."""
    entries = IdleEntries[Entry]()
    Entry.checks = 0
    fill(entries, "busy", 1000, idle=False)
    assert len(entries) == 1000
    assert Entry.checks <= 2 * 1000


def test_an_entry_in_use_is_kept_and_an_idle_one_is_forgotten() -> None:
    entries = IdleEntries[Entry]()
    busy = fill(entries, "busy", 10, idle=False)
    fill(entries, "idle", 100, idle=True)
    # Each addition checks two: after as many as there are entries, each was checked.
    fill(entries, "new", 110, idle=False)
    assert len(entries) == 120
    assert fill(entries, "busy", 10, idle=True) == busy
    assert not any(entry.idle for entry in entries.values())


def test_known_entries_are_not_checked() -> None:
    entries = IdleEntries[Entry]()
    fill(entries, "idle", 1, idle=True)
    Entry.checks = 0
    fill(entries, "idle", 1, idle=True)
    assert Entry.checks == 0
