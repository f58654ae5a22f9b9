"""The addresses of a pool, and the next free one."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address, ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsmith_runtime.ipam.address_ranges import (
    Address,
    AddressRanges,
    InvalidRangesError,
    address_of,
    number_of,
    parse_number,
)

BASES: dict[int, Address] = {4: IPv4Address("10.0.0.0"), 6: IPv6Address("2001:db8::")}
PREFIXES = {4: st.integers(22, 32), 6: st.integers(118, 128)}
NETWORKS = {4: st.integers(25, 32), 6: st.integers(121, 128)}


@st.composite
def entries(draw: st.DrawFn, version: int, least: int = 1) -> list[str]:
    """Draw networks, ranges and single addresses among the first thousand addresses."""
    found = []
    base = BASES[version]
    for _ in range(draw(st.integers(least, 4))):
        low = base + draw(st.integers(0, 900))
        match draw(st.sampled_from(["single", "range", "network"])):
            case "single":
                found.append(str(low))
            case "range":
                found.append(f"{low}-{low + draw(st.integers(0, 60))}")
            case _:
                prefix = draw(NETWORKS[version])
                found.append(str(ip_network(f"{low}/{prefix}", strict=False)))
    return found


def enumerate_addresses(texts: list[str]) -> set[Address]:
    """Return all addresses of some entries, one by one."""
    found: set[Address] = set()
    for text in texts:
        if "-" in text:
            first, last = (ip_address(part) for part in text.split("-"))
            found |= {first + n for n in range(int(last) - int(first) + 1)}
        else:
            found |= set(ip_network(text))
    return found


def reserved(address: Address, prefix: int) -> bool:
    network = ip_network(f"{address}/{prefix}", strict=False)
    if network.num_addresses <= 2:
        return False
    last = network.broadcast_address if isinstance(network, IPv4Network) else None
    return address in (network.network_address, last)


@given(st.data(), st.sampled_from([4, 6]), st.booleans())
def test_a_pool_has_the_addresses_of_its_entries(
    data: st.DataObject, version: int, with_reserved: bool
) -> None:
    texts, prefix = data.draw(entries(version)), data.draw(PREFIXES[version])
    excluded = data.draw(entries(version, least=0))
    gateway = data.draw(st.none() | st.sampled_from([str(BASES[version] + n) for n in range(9)]))
    ranges = AddressRanges.of(
        texts, prefix, gateway=gateway, excluded=excluded, with_reserved=with_reserved
    )

    wanted = (
        enumerate_addresses(texts)
        - enumerate_addresses(excluded)
        - {gateway and ip_address(gateway)}
    )
    if not with_reserved:
        wanted = {address for address in wanted if not reserved(address, prefix)}
    around = [BASES[version] + n for n in range(1100)]
    assert [a for a in around if number_of(a) in ranges] == sorted(wanted)
    assert ranges.size == len(wanted)


@given(st.data(), st.sampled_from([4, 6]))
def test_every_address_is_allocated_exactly_once(data: st.DataObject, version: int) -> None:
    ranges = AddressRanges.of(
        data.draw(entries(version)),
        data.draw(PREFIXES[version]),
        excluded=data.draw(entries(version, least=0)),
    )
    taken: set[int] = set()
    start = 0
    while (number := ranges.first_free(taken, start)) is not None:
        assert number in ranges
        assert number not in taken
        assert number >= start
        taken.add(number)
        start = number if data.draw(st.booleans()) else number + 1
    assert len(taken) == ranges.size


@given(st.ip_addresses())
def test_numbers_represent_addresses(address: Address) -> None:
    assert address_of(number_of(address)) == address
    assert parse_number(str(address)) == number_of(address)


@given(st.ip_addresses(v=4), st.ip_addresses(v=6))
def test_numbers_of_the_families_never_overlap(four: IPv4Address, six: IPv6Address) -> None:
    assert number_of(four) < number_of(six)


def test_large_pools_cost_nothing() -> None:
    ranges = AddressRanges.of(["2001:db8::/64"], 64, excluded=["2001:db8::1-2001:db8::ffff"])
    number = ranges.first_free(frozenset())

    assert ranges.size == 2**64 - 2**16
    assert number is not None
    assert str(address_of(number)) == "2001:db8::1:0"


def test_network_and_broadcast_follow_from_the_prefix() -> None:
    """A part of a network has no broadcast address of its own."""
    part = AddressRanges.of(["10.0.0.0/25"], 24)
    whole = AddressRanges.of(["10.0.0.0/24"], 24, gateway="10.0.0.1")
    two = AddressRanges.of(["10.0.0.0/31"], 31)

    assert part.size == 127
    assert whole.size == 253
    assert two.size == 2
    assert AddressRanges.of(["10.0.0.0/24"], 24, with_reserved=True).size == 256
    assert AddressRanges.of(["2001:db8::/120"], 120).size == 255


@pytest.mark.parametrize(
    ("addresses", "prefix", "more", "complaint"),
    [
        ([], 24, {}, "the pool has no addresses"),
        (["10.0.0.1", "2001:db8::1"], 24, {}, "either IPv4 or IPv6"),
        (["10.0.0.1"], 24, {"gateway": "2001:db8::1"}, "either IPv4 or IPv6"),
        (["10.0.0.1"], 24, {"excluded": ["2001:db8::1"]}, "either IPv4 or IPv6"),
        (["10.0.0.9-10.0.0.1"], 24, {}, "ascending"),
        (["10.0.0.1-2001:db8::1"], 24, {}, "ascending"),
        (["10.0.0.1"], 33, {}, "between 0 and 32"),
        (["2001:db8::1"], 129, {}, "between 0 and 128"),
        (["10.0.0.1/24"], 24, {}, "has host bits set"),
        (["10.0.0.256"], 24, {}, "10.0.0.256"),
        (["fe80::1%eth0"], 64, {}, "zone"),
        (["fe80::%eth0/64"], 64, {}, "zone"),
        (["10.0.0.0/255.255.255.0"], 24, {}, "no prefix length"),
        (["10.0.0.0/0.0.0.255"], 24, {}, "no prefix length"),
        (["10.0.0.0/"], 24, {}, "no prefix length"),
        (["10.0.0.1"], 24, {"gateway": "router"}, "router"),
        (["10.0.0.1"], 24, {"excluded": ["-"]}, "excludedAddresses"),
    ],
)
def test_invalid_fields_are_reported(
    addresses: list[str], prefix: int, more: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(InvalidRangesError, match=complaint):
        AddressRanges.of(addresses, prefix, **more)


def test_other_text_is_no_address() -> None:
    assert parse_number("no address") is None
