"""Who of those that wait for a pool comes back when."""

from __future__ import annotations

from capsmith_generated.address_ranges import AddressRanges
from capsmith_generated.controllers.ipam.ledger import Ledger
from capsmith_generated.runtime.client import Key

TWO = AddressRanges.of(["10.0.0.1-10.0.0.2"], 24)
CLAIMS = [Key("default", name) for name in "abc"]


def _waited_for() -> Ledger:
    ledger = Ledger("FooPool pool")
    for claim in CLAIMS:
        ledger.waiting[claim] = None
    return ledger


def test_all_come_back_when_a_pool_is_there() -> None:
    """Also those for whom nothing is left: what they were told is over.

    Proves: IP-05.
    """
    ledger = _waited_for()
    assert ledger.next_waiting() == []
    ledger.open(TWO)
    assert ledger.next_waiting() == CLAIMS
    assert not ledger.waiting


def test_as_many_come_back_as_there_are_addresses() -> None:
    ledger = Ledger("FooPool pool")
    ledger.open(TWO)
    assert ledger.next_waiting() == []
    ledger.waiting |= dict.fromkeys(CLAIMS)
    ledger.open(TWO)
    assert ledger.next_waiting() == CLAIMS[:2]
    assert list(ledger.waiting) == CLAIMS[2:]


def test_nobody_comes_back_to_a_pool_that_was_closed_meanwhile() -> None:
    ledger = _waited_for()
    ledger.open(TWO)
    ledger.close("is not ready")
    assert ledger.next_waiting() == []
    ledger.open(TWO)
    assert ledger.next_waiting() == CLAIMS
