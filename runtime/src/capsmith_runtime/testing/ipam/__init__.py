"""Scope builders for unit tests of IPAM providers; they need no API server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from typing import Any, TypeVar

from capsmith_runtime.ipam.api import AddressClaim, AddressRelease, Pool
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.reconcile.sessions import ScopeSession
from capsmith_runtime.testing.core import NAMESPACE, core_cluster, given_credentials, spec_from

__all__ = [
    "address_claim",
    "address_release",
    "core_cluster",
    "pool",
    "spec_from",
]


Spec = TypeVar("Spec")


def pool(
    spec: Spec,
    fields: Mapping[str, Any],
    name: str = "pool",
    *,
    credentials: Mapping[str, str] | None = None,
    session: object = None,
) -> Pool[Spec]:
    """Create a pool; ``fields`` are the fields under ``spec`` in the object."""
    return Pool(
        name=name,
        namespace=NAMESPACE,
        external_id=f"{name}.0001",
        logger=get_logger("test"),
        spec=spec,
        raw_spec=fields,
        _credentials=given_credentials(credentials),
        _session=ScopeSession(session),
    )


def address_claim(
    of: Pool[Spec],
    name: str = "claim",
    *,
    taken: Iterable[str] = (),
    credentials: Mapping[str, str] | None = None,
    session: object = None,
) -> AddressClaim[Spec]:
    """Create a claim for an address from the pool ``of``, without a Cluster."""
    return AddressClaim(
        name=name,
        namespace=NAMESPACE,
        external_id=f"{name}.0001",
        logger=get_logger("test"),
        pool=of,
        cluster=None,
        taken=frozenset(map(ip_address, taken)),
        _credentials=given_credentials(credentials),
        _session=ScopeSession(session),
    )


def address_release(
    of: Pool[Any],
    name: str = "claim",
    *,
    address: str | None = None,
    credentials: Mapping[str, str] | None = None,
    session: object = None,
) -> AddressRelease:
    """Create the request to pass to ``release`` for a deleted claim on the pool ``of``."""
    return AddressRelease(
        name=name,
        namespace=NAMESPACE,
        external_id=f"{name}.0001",
        logger=get_logger("test"),
        pool_name=of.name,
        raw_pool_spec=of.raw_spec,
        address=ip_address(address) if address is not None else None,
        _credentials=given_credentials(credentials),
        _session=ScopeSession(session),
    )
