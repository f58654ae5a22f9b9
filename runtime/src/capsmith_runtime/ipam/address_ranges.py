"""Ranges of addresses, and the search for a free address in them.

Addresses are compared as numbers; no IPv4 address has the number of an IPv6 address. Ranges are
never enumerated, so a pool with 2^64 addresses needs as few resources as one with four.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

Address = IPv4Address | IPv6Address
"""An IPv4 or IPv6 address, as in the standard library."""
Span = tuple[int, int]
"""First and last number of a span, both inclusive."""

_IPV6_OFFSET: Final = 1 << 128
"""Offset that puts IPv6 addresses' numbers above those of all IPv4 addresses."""


class InvalidRangesError(ValueError):
    """Raised if a pool's fields contradict each other or one of them is invalid."""


@dataclass(frozen=True, slots=True)
class AddressRanges:
    """The addresses that may be allocated from an IP pool, with prefix length and gateway."""

    spans: tuple[Span, ...]
    """Spans of address numbers, sorted and disjoint, without the excluded addresses."""
    prefix: int
    """Prefix length of the network, such as 24."""
    gateway: Address | None = None
    """Gateway of the addresses, which is never allocated, or None if there is none."""
    with_reserved: bool = False
    """Whether network and broadcast addresses may be allocated as well."""

    @classmethod
    def of(
        cls,
        addresses: Sequence[str],
        prefix: int,
        *,
        gateway: str | None = None,
        excluded: Sequence[str] = (),
        with_reserved: bool = False,
    ) -> AddressRanges:
        """Create the ranges that a pool's fields describe.

        ``addresses`` and ``excluded`` contain networks (``10.0.0.0/24``), ranges
        (``10.0.0.10-10.0.0.20``) or single addresses.  Raises InvalidRangesError if they are
        invalid or contradict each other.
        """
        spans = _merged(_span(text, "addresses") for text in addresses)
        holes = [_span(text, "excludedAddresses") for text in excluded]
        gateway_address = _address(gateway, "gateway") if gateway else None
        if gateway_address is not None:
            holes.append((number_of(gateway_address), number_of(gateway_address)))
        _check_family(spans, holes, prefix)
        return cls(tuple(_without(spans, _merged(holes))), prefix, gateway_address, with_reserved)

    @property
    def size(self) -> int:
        """Return the number of addresses that can be allocated, which may exceed 64 bits."""
        return sum(last - first + 1 - self._reserved_in(first, last) for first, last in self.spans)

    def __contains__(self, number: object) -> bool:
        """Return whether the address with this number can be allocated."""
        if not isinstance(number, int) or self._is_reserved(number):
            return False
        position = bisect_right(self.spans, number, key=lambda span: span[0])
        return position > 0 and number <= self.spans[position - 1][1]

    def first_free(self, taken: Container[int], start: int = 0) -> int | None:
        """Return the lowest free number that is at least ``start``, or None if there is none."""
        is_reserved = self._is_reserved if self._host_mask else None
        for first, last in self.spans:
            number = max(first, start)
            while number <= last:
                if number not in taken and not (is_reserved and is_reserved(number)):
                    return number
                number += 1
        return None

    @property
    def _host_mask(self) -> int:
        """Return the mask of the host bits, or 0 for networks without reserved addresses.

        See RFC 3021 and RFC 6164.
        """
        bits = (128 if self._is_ipv6 else 32) - self.prefix
        return (1 << bits) - 1 if bits > 1 and not self.with_reserved else 0

    @property
    def _is_ipv6(self) -> bool:
        return bool(self.spans) and self.spans[0][0] >= _IPV6_OFFSET

    def _is_reserved(self, number: int) -> bool:
        """Return whether ``number`` is the network address or the IPv4 broadcast address."""
        mask = self._host_mask
        host = number & mask
        return bool(mask) and (host == 0 or (host == mask and number < _IPV6_OFFSET))

    def _reserved_in(self, first: int, last: int) -> int:
        mask = self._host_mask
        if not mask:
            return 0
        # Counted by division, as the ranges may have 2^64 addresses.
        networks = last // (mask + 1) - (first - 1) // (mask + 1)
        if first >= _IPV6_OFFSET:
            return networks
        return networks + (last + 1) // (mask + 1) - first // (mask + 1)


def number_of(address: Address) -> int:
    """Return the number that represents an address; :func:`address_of` is the inverse."""
    return int(address) + (_IPV6_OFFSET if address.version == 6 else 0)


def address_of(number: int) -> Address:
    """Return the address that a number represents."""
    return IPv6Address(number - _IPV6_OFFSET) if number >= _IPV6_OFFSET else IPv4Address(number)


def parse_number(text: str) -> int | None:
    """Return the number that represents an address string, or None if it is not an address."""
    try:
        return number_of(ip_address(text))
    except ValueError:
        return None


def _span(text: str, field: str) -> Span:
    first, dash, last = (part.strip() for part in text.partition("-"))
    if dash:
        span = number_of(_address(first, field)), number_of(_address(last, field))
        if span[0] > span[1] or (span[0] < _IPV6_OFFSET <= span[1]):
            raise InvalidRangesError(f"spec.{field}: {text!r} is not in ascending order")
        return span
    if "/" in first:
        address, _, length = first.partition("/")
        _address(address, field)
        # Python would take a mask for a length: 0.0.0.255 means /24, and 255.0.0.0 means /8.
        if not (length.isascii() and length.isdecimal()):
            raise InvalidRangesError(f"spec.{field}: {text!r} has no prefix length")
        try:
            network = ip_network(first)
        except ValueError as error:
            raise InvalidRangesError(f"spec.{field}: {error}") from None
        return number_of(network.network_address), number_of(network.broadcast_address)
    number = number_of(_address(first, field))
    return number, number


def _address(text: str, field: str) -> Address:
    try:
        address = ip_address(text)
    except ValueError as error:
        raise InvalidRangesError(f"spec.{field}: {error}") from None
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        raise InvalidRangesError(f"spec.{field}: {text!r} has a zone")
    return address


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for first, last in sorted(spans):
        # The last number of IPv4 and the first of IPv6 are not adjacent: 2^32 is below 2^128.
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return merged


def _without(spans: Sequence[Span], holes: Sequence[Span]) -> Iterator[Span]:
    for first, last in spans:
        start = first
        for hole_first, hole_last in holes:
            if hole_last < start or hole_first > last:
                continue
            if hole_first > start:
                yield start, hole_first - 1
            start = hole_last + 1
        if start <= last:
            yield start, last


def _check_family(spans: Sequence[Span], holes: Sequence[Span], prefix: int) -> None:
    if not spans:
        raise InvalidRangesError("spec.addresses: the pool has no addresses")
    is_ipv6 = {first >= _IPV6_OFFSET for first, _ in (*spans, *holes)}
    if len(is_ipv6) > 1:
        raise InvalidRangesError("spec: a pool must be either IPv4 or IPv6")
    longest = 128 if is_ipv6 == {True} else 32
    if not 0 <= prefix <= longest:
        raise InvalidRangesError(f"spec.prefix: {prefix} is not between 0 and {longest}")
