"""One hook of the runtime SDK that an extension serves."""

from __future__ import annotations

from typing import NamedTuple

from capsmith.safetext import DnsLabel, Identifier, SafeText


class Hook(NamedTuple):
    """One hook of Cluster API's runtime SDK, and how the extension answers it (RX-04, RX-05)."""

    hook: Identifier
    """``GeneratePatches``."""
    name: DnsLabel
    """Of the handler: ClusterClasses name ``<name>.<ExtensionConfig>``."""
    method: Identifier
    """The method in the author's class: ``generate_patches``."""
    constant: Identifier
    """``GENERATE_PATCHES``."""
    module: Identifier
    """Of the generated code that reads and writes it: ``topology``."""
    request: Identifier
    """Class that the method is given."""
    answer: SafeText
    """Type of what the method returns: ``Proceed | RetryAfter``."""
    timeout_seconds: int
    ignore_failures: bool
    since: str
    """Release of core that knows it first; empty: all that runtime extensions are for."""
    statement: str
