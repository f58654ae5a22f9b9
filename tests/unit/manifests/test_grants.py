"""What the rules of a role allow."""

from __future__ import annotations

from capsmith.manifests.permissions import Grant, find_missing

GROUP = "coordination.k8s.io"
VERBS = ("create", "get", "update")


def test_a_rule_for_named_objects_allows_no_creation() -> None:
    named = Grant((GROUP,), ("leases",), VERBS, ("acme-leader",))
    assert find_missing([named], GROUP, "leases", VERBS) == ["create"]
    creation = Grant((GROUP,), ("leases",), ("create",))
    assert find_missing([named, creation], GROUP, "leases", VERBS) == []


def test_subresources_of_named_objects_may_be_created() -> None:
    named = Grant(("",), ("serviceaccounts/token",), ("create",), ("acme",))
    assert find_missing([named], "", "serviceaccounts/token", ["create"]) == []
