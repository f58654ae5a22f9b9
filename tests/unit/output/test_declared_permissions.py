"""The ``permissions.yaml`` files of the library, and what such a file may hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from capsmith import resources
from capsmith.commands.build import load_runtime_library
from capsmith.contract.load import load_rules
from capsmith.errors import UnreadableInput
from capsmith.output.rbac.model import DeclaredRule, parse_permissions
from capsmith.provider.model import Role

RULE = {"groups": ["example.com"], "resources": ["things"], "verbs": ["get"], "reason": "Why."}
KINDS = {"kinds": {"features": ["reconciled"]}, "verbs": ["get"], "reason": "Why."}


def rules() -> Iterator[DeclaredRule]:
    for declared in load_runtime_library().permissions.values():
        yield from (*declared.manager, *declared.namespace, *declared.aggregate)


def test_each_provider_type_declares_its_own() -> None:
    slices = set(load_runtime_library().slices) - {
        "admission",
        "flags",
        "health",
        "machine_addresses",
        "machine_pool",
        "machine_pool_api",
        "machine_template",
        "v1beta1",
        "webhook",
        "workload",
    }

    assert set(load_runtime_library().permissions) == {*slices, "kube", "reconcile"}


def test_a_reason_names_the_rules_of_the_contract() -> None:
    known = load_rules(resources.schemas())
    for rule in rules():
        assert rule.reason.endswith(".")
        assert re.findall(r"[A-Z]{2,3}-[0-9]{2}", rule.reason) == list(rule.rules)
        assert set(rule.rules) <= set(known), rule.reason
    assert {"RB-03", "RB-04", "RB-05", "RB-06", "RB-07", "RB-08", "RB-10"} <= {
        id for rule in rules() for id in rule.rules
    }


def test_only_verbs_that_the_api_server_requires_are_granted_without_a_request() -> None:
    """And those on objects that only the author's code creates, and of former managers.

    Proves: RB-04.
    """
    for declared in load_runtime_library().permissions.values():
        for rule in (*declared.manager, *declared.namespace):
            for key, reason in rule.uncalled.items():
                if rule.kinds and rule.kinds.roles == (Role.RESOURCE,):
                    assert reason.startswith("Only the author's code"), rule.reason
                    continue
                if rule.resources == ("leases",):
                    assert key == "patch"
                    assert reason.startswith("Managers of former releases")
                    continue
                verb = key.partition(" ")[0]
                on_finalizers = "finalizers" in (rule.subresource, *_subresources(rule))
                assert verb == ("update" if on_finalizers else "delete"), rule.reason
                assert reason.startswith("The API server requires it"), rule.reason
                assert "RB-04" in rule.rules


def test_core_gets_something_on_each_kind_that_it_reads() -> None:
    """Proves: RB-03."""
    aggregated = {
        role
        for declared in load_runtime_library().permissions.values()
        for rule in declared.aggregate
        if rule.kinds
        for role in rule.kinds.roles
    }
    others = {Role.IDENTITY, Role.IP_POOL, Role.GLOBAL_IP_POOL, Role.ADDON, Role.RESOURCE}

    assert aggregated == set(Role) - others


def _subresources(rule: DeclaredRule) -> list[str]:
    return [each.partition("/")[2] for each in rule.resources]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"managers": []}, "unknown keys managers"),
        ({"manager": [{**RULE, "verb": "get"}]}, "unknown keys verb"),
        ({"manager": [{**RULE, "reason": 1}]}, "reason is 1"),
        ({"manager": [{"groups": [""], "resources": ["pods"], "verbs": ["get"]}]}, "reason"),
        ({"manager": [{**KINDS, "kinds": {"features": ["fast"]}}]}, "'fast'"),
        ({"manager": [{**KINDS, "kinds": {"roles": ["InfraPod"]}}]}, "'InfraPod'"),
        ({"manager": [{**RULE, **KINDS}]}, "either kinds, or groups and resources"),
        ({"manager": [{"verbs": ["get"], "reason": "Why."}]}, "either kinds"),
        ({"manager": [{**RULE, "subresource": "status"}]}, "a subresource without kinds"),
        ({"manager": [{**RULE, "names": ["$pod"]}]}, "unknown placeholder"),
        ({"manager": [{**RULE, "uncalled": {"list": "Why."}}]}, "a verb that is not called"),
        ({"aggregate": [RULE]}, "aggregated rules are about kinds"),
    ],
)
def test_what_is_unknown_is_refused(data: Any, message: str) -> None:
    with pytest.raises(UnreadableInput, match=re.escape(message)) as refused:
        parse_permissions(data, "infrastructure/permissions.yaml")
    assert refused.value.finding.location.file == "infrastructure/permissions.yaml"


def test_a_rule_as_it_is_written() -> None:
    declared = parse_permissions({"manager": [RULE], "aggregate": [KINDS]}, "x.yaml")

    assert declared.manager[0].groups == ("example.com",)
    assert declared.aggregate[0].kinds is not None
    assert declared.namespace == ()
