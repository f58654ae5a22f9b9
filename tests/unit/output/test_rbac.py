"""provider/rbac.py: no permission of the contract is missing, and each one has a reason."""

from __future__ import annotations

from collections.abc import Iterable

from capsmith.output.crd import build_version_schema
from capsmith.output.rbac import (
    Permission,
    build_policy_rule,
    list_editor_permissions,
    list_identity_editor_permissions,
    list_viewer_permissions,
)
from capsmith.provider.model import PolicyRule, Watch
from capsmith.safetext import DnsLabel, KindName, VersionName
from tests.unit.provider.build import FEATURES, provider, version
from tests.unit.provider.permissions import (
    aggregate_permissions,
    client_permissions,
    manager_permissions,
    namespace_permissions,
)

GROUP = "infrastructure.cluster.x-k8s.io"


def verbs(permissions: Iterable[Permission], group: str, resource: str) -> set[str]:
    return {
        verb
        for permission in permissions
        if group in permission.groups and resource in permission.resources
        for verb in permission.verbs
    }


def manager(
    credentials: bool = False, features: frozenset[str] = FEATURES
) -> tuple[Permission, ...]:
    made = provider(credentials=credentials, features=features)
    return manager_permissions(made, made.components[0])


def test_the_manager_changes_its_own_kinds_but_neither_makes_nor_deletes_them() -> None:
    """Proves: RB-06, SM-06."""
    found = manager()

    assert verbs(found, GROUP, "acmemachines") == {"list", "watch", "patch"}
    assert verbs(found, GROUP, "acmemachines/status") == {"patch"}
    # Nothing is owned by a machine that claims no addresses.
    assert verbs(found, GROUP, "acmemachines/finalizers") == set()


def test_the_authors_code_may_do_what_is_declared_and_what_the_manager_does_with_own_kinds() -> (
    None
):
    rule = PolicyRule(("",), ("configmaps",), ("get",), ("a",))
    made = provider(credentials=True)._replace(rbac=(rule,))
    (component,) = made.components
    found = client_permissions(made, component)

    assert {resource for each in found for resource in each.resources} == {
        *("acmeclusters", "acmemachines", "acmeidentities", "configmaps")
    }
    assert verbs(found, GROUP, "acmemachines") == {"list", "watch", "patch"}
    assert found[-1][:3] + found[-1][4:] == tuple(rule)
    assert set(found) <= set(manager_permissions(made, component))


def test_watched_kinds_are_read_once() -> None:
    config_maps = Watch("", VersionName("v1"), KindName("ConfigMap"), DnsLabel("configmaps"), True)
    by_label = config_maps._replace(label="acme.io/machine")
    made = provider()
    component = made.components[0]
    watching = component._replace(
        resources=tuple(
            each._replace(watches=(config_maps, by_label)) for each in component.resources
        )
    )
    bare = manager_permissions(made, component)
    found = manager_permissions(made, watching)

    (read,) = (each for each in found if each not in bare)
    assert read[:3] == (("",), ("configmaps",), ("get", "list", "watch"))
    assert str(component.resources[0].kind) in read.reason
    assert read in client_permissions(made, watching)


def test_the_manager_only_reads_what_core_owns() -> None:
    """Proves: RB-07, SM-06."""
    found = manager()

    assert verbs(found, "cluster.x-k8s.io", "clusters") == {"get", "list", "watch"}
    assert verbs(found, "cluster.x-k8s.io", "machines") == {"list", "watch"}
    # By name only: a user who may list Secrets reads all of them.
    assert verbs(found, "", "secrets") == {"get"}
    assert verbs(found, "events.k8s.io", "events") == {"create"}
    assert verbs(found, "apiextensions.k8s.io", "customresourcedefinitions") == set()


def test_templates_are_the_managers_business_only_for_their_capacity() -> None:
    assert verbs(manager(), GROUP, "acmemachinetemplates") == set()

    found = manager(features=FEATURES | {"capacity"})
    assert verbs(found, GROUP, "acmemachinetemplates") == {"list", "watch"}
    assert verbs(found, GROUP, "acmemachinetemplates/status") == {"patch"}
    assert verbs(found, GROUP, "acmeclustertemplates/status") == set()


def test_kinds_in_several_versions_are_rewritten_whatever_they_are() -> None:
    """Proves: CRD-16, RB-06."""
    made = provider(credentials=True)
    (component,) = made.components
    both = (version()._replace(name=VersionName("v1alpha1"), storage=False), version())
    several = component._replace(
        resources=tuple(each._replace(versions=both) for each in component.resources)
    )
    found = manager_permissions(made, several)
    definitions = "apiextensions.k8s.io"

    assert verbs(found, definitions, "customresourcedefinitions") == {"get", "list", "watch"}
    (told,) = (each for each in found if "customresourcedefinitions/status" in each.resources)
    assert told.verbs == ("patch",)
    assert set(told.names) == {str(each.crd_name) for each in component.resources}
    for resource in several.resources:
        assert verbs(found, GROUP, resource.plural) >= {"list", "patch"}
        # The status is where objects are rewritten that have one.
        schema = build_version_schema(resource, resource.storage_version)
        if "status" in schema["properties"]:
            assert "patch" in verbs(found, GROUP, f"{resource.plural}/status")
    # A user who may patch a CRD decides who converts, and so reads and changes, all objects.
    assert verbs(found, definitions, "customresourcedefinitions") & {"patch", "update"} == set()

    single = manager_permissions(made, component)
    assert not any(definitions in each.groups for each in single)


def test_credentials_bring_namespaces_and_the_ownership_of_secrets() -> None:
    """Proves: RB-04."""
    assert verbs(manager(), "", "namespaces") == set()
    assert verbs(manager(credentials=True), "", "namespaces") == {"list", "watch"}
    assert (
        verbs(namespace_permissions(provider(), provider().components[0]), "", "secrets") == set()
    )
    # Changing the owners of a Secret needs delete where owner references are enforced (RB-04).
    at_home = namespace_permissions(
        provider(credentials=True), provider(credentials=True).components[0]
    )
    assert verbs(at_home, "", "secrets") == {"get", "list", "watch", "patch", "delete"}


def test_leader_election_is_allowed_at_home() -> None:
    """Proves: RB-10."""
    found = verbs(
        namespace_permissions(provider(), provider().components[0]), "coordination.k8s.io", "leases"
    )
    assert found == {"get", "create", "patch", "update"}


def test_the_authors_permissions_are_added_as_they_are() -> None:
    own = PolicyRule(("example.com",), ("things",), ("get",), ("one",))
    made = provider()._replace(rbac=(own,))
    last = manager_permissions(made, made.components[0])[-1]

    assert build_policy_rule(last) == {
        "apiGroups": ["example.com"],
        "resources": ["things"],
        "resourceNames": ["one"],
        "verbs": ["get"],
    }


def test_core_gets_the_permissions_of_the_contract() -> None:
    """Proves: RB-03, RB-05."""
    found = aggregate_permissions(provider(credentials=True).components[0])
    seven = {"create", "delete", "get", "list", "patch", "update", "watch"}

    assert verbs(found, GROUP, "acmeclusters") == seven
    assert verbs(found, GROUP, "acmemachines") == seven
    assert verbs(found, GROUP, "acmemachinetemplates") == seven
    assert verbs(found, GROUP, "acmeclustertemplates") == seven - {"create"}
    assert verbs(found, GROUP, "acmeclusters/finalizers") == {"update"}
    assert verbs(found, GROUP, "acmemachines/finalizers") == {"update"}
    assert verbs(found, GROUP, "acmeidentities") == set()


def test_users_read_or_change_objects_but_never_write_status() -> None:
    component = provider(credentials=True).components[0]

    assert verbs(list_viewer_permissions(component), GROUP, "acmeidentities") == {
        "get",
        "list",
        "watch",
    }
    assert "delete" in verbs(list_editor_permissions(component), GROUP, "acmemachines")
    assert verbs(list_editor_permissions(component), GROUP, "acmemachines/status") == {"get"}
    assert verbs(list_editor_permissions(component), "", "secrets") == set()


def test_only_a_role_of_its_own_lets_users_change_identities() -> None:
    component = provider(credentials=True).components[0]

    assert verbs(list_editor_permissions(component), GROUP, "acmeidentities") == {
        "get",
        "list",
        "watch",
    }
    assert verbs(list_identity_editor_permissions(component), GROUP, "acmeidentities") >= {
        *("create", "delete", "patch", "update")
    }
    assert verbs(list_identity_editor_permissions(component), GROUP, "acmemachines") == set()
    assert list_identity_editor_permissions(provider().components[0]) == ()


def test_every_permission_has_a_reason_and_no_wildcard() -> None:
    made = provider(credentials=True, features=FEATURES | {"capacity"})
    component = made.components[0]
    found = (
        *manager_permissions(made, component),
        *namespace_permissions(made, component),
        *aggregate_permissions(component),
        *list_viewer_permissions(component),
        *list_editor_permissions(component),
        *list_identity_editor_permissions(component),
    )

    assert all(permission.reason.endswith(".") for permission in found)
    assert not any(
        "*" in (*permission.groups, *permission.resources, *permission.verbs)
        for permission in found
    )
