"""Faults in a CRD, and the names that Kubernetes accepts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from capsmith.yamldoc.compose import Path

Schema = Mapping[str, Any]

_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_PART = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_PART}(\.{_PART})*")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LONGEST_LABEL, _LONGEST_SUBDOMAIN = 63, 253


class Fault(NamedTuple):
    """A reason why the API server would reject a CRD."""

    path: Path
    """Path to the fault, relative to the part of the CRD that was checked."""
    message: str


def is_label(text: str) -> bool:
    """Return whether ``text`` is an RFC 1035 DNS label, which starts with a letter."""
    return len(text) <= _LONGEST_LABEL and _LABEL.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    """Return whether ``text`` is a lowercase RFC 1123 DNS subdomain."""
    return len(text) <= _LONGEST_SUBDOMAIN and _SUBDOMAIN.fullmatch(text) is not None


def is_qualified_name(text: str) -> bool:
    """Return whether ``text`` is a valid label key, such as ``example.com/role``."""
    prefix, slash, name = text.rpartition("/")
    return (not slash or is_subdomain(prefix)) and bool(name) and is_label_value(name)


def is_label_value(text: str) -> bool:
    """Return whether ``text`` is a valid label value. The empty string is valid."""
    return not text or (len(text) <= _LONGEST_LABEL and _QUALIFIED.fullmatch(text) is not None)
