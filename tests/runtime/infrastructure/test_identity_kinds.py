"""Several kinds of identities: which one a cluster uses, and which changes concern it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from capsmith_runtime.api.serialization import DecodingError
from capsmith_runtime.identity import references
from capsmith_runtime.identity.kinds import IdentityKind
from capsmith_runtime.kube.client import JSON, ResourceType
from capsmith_runtime.reconcile.sessions import Credentials
from capsmith_runtime.testing import infrastructure as testing


def kind(name: str, *, namespaced: bool) -> IdentityKind:
    plural = f"{name.lower()}s"
    return IdentityKind(
        resource=ResourceType("example.com", "v1", name, plural, namespaced=namespaced)
    )


KINDS = (kind("Shared", namespaced=False), kind("Tenant", namespaced=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantSpec:
    project: str


def cluster(kind: str, name: str) -> JSON:
    reference = {"kind": kind, "name": name}
    return {"metadata": {"namespace": "n", "name": "c"}, "spec": {"identityRef": reference}}


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        (("Shared", "a"), ["Shared//a"]),
        (("Tenant", "a"), ["Tenant/n/a"]),
        (("Tenant", "x/y/z"), ["Tenant/n/x/y/z"]),
        (("Secret", "a"), []),
        (("Tenant", ""), []),
    ],
)
def test_the_reference_names_kind_and_name(reference: tuple[str, str], expected: list[str]) -> None:
    user = cluster(*reference)

    assert list(references.find_keys(KINDS, references.read_reference(user), user)) == expected


def test_a_typed_spec_comes_with_the_credentials() -> None:
    spec = {"project": "blue", "secretRef": {"name": "s"}}
    given = Credentials({"token": "t"}, "n/a", kind="Tenant", spec=spec)
    scope = testing.infra_machine(None, credentials=given)

    assert scope.credentials.identity_spec(TenantSpec) == TenantSpec(project="blue")
    assert (scope.credentials.identity_kind, scope.credentials.identity) == ("Tenant", "n/a")
    assert "blue" not in repr(scope.credentials)


def test_fields_of_another_kind_are_named() -> None:
    with pytest.raises(DecodingError, match=r"identity\.project"):
        Credentials(kind="Shared").identity_spec(TenantSpec)


def test_credentials_of_a_changed_identity_differ() -> None:
    """A client that was created for the former ones must not be used again."""
    former, latest = (
        Credentials({}, "a", kind="Role", spec={"role": role}) for role in ("reader", "writer")
    )

    assert former != latest
    assert former == Credentials({}, "a", kind="Role", spec={"role": "reader"})
    assert Credentials({}, "a", kind="Role") != Credentials({}, "a", kind="Tenant")
    assert Credentials({"token": "t"}) == {"token": "t"}


def test_credentials_differ_if_any_source_does() -> None:
    """A client that was created with the credentials of a former source must not be used again."""

    def derive(token: str, role: str) -> Credentials:
        base = Credentials({"token": token}, "base", kind="Shared")
        middle = Credentials(identity="middle", kind="Role", spec={"role": role}, source=base)
        return Credentials(identity="last", kind="Role", source=middle)

    assert derive("t", "r") == derive("t", "r")
    assert derive("t", "r") != derive("u", "r")
    assert derive("t", "r") != derive("t", "s")
    assert derive("t", "r") != Credentials(identity="last", kind="Role")
    assert "token" not in repr(derive("t", "r"))
