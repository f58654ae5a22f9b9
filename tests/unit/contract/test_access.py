"""Who reads and writes the objects of providers: the data, and what the generator grants."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith import resources
from capsmith.commands.load import load, load_contracts
from capsmith.contract.access import AccessTable, ManagerAccess, load_access, rank_core_series
from capsmith.contract.compatibility import load_compatibility
from capsmith.contract.model import AuditedTest, GrantedBy
from capsmith.errors import UnreadableInput
from capsmith.manifests.permissions import Grant, find_missing
from tests.golden.cases import Case, cases

TABLE = load_access(resources.schemas())
RULES = {id: rule for contract in load_contracts() for id, rule in contract.rules.items()}
CORE = load_compatibility(resources.schemas()).core
CASES = cases()
VARIABLE = re.compile(r"\$\{\w+:=([^}]*)\}")
Manifest = dict[str, Any]
GOOD: dict[str, list[dict[str, Any]]] = {
    "managers": [
        {
            "name": "core",
            "title": "Core",
            "namespace": "capi-system",
            "account": "capi-manager",
            "groups": ["infrastructure.cluster.x-k8s.io"],
            "label": "aggregate",
            "source": {"v1.10": "role.yaml"},
        },
        {
            "name": "other",
            "title": "Other",
            "namespace": "other-system",
            "account": "other-manager",
            "groups": [],
            "source": {"v1.10": "role.yaml"},
        },
    ],
    "access": [
        {
            "manager": "core",
            "kinds": ["InfraMachine"],
            "verbs": ["list", "watch"],
            "purpose": "They are read.",
            "permission": "label",
            "rules": ["RB-01"],
            "since": "v1.9",
            "until": "v1.13",
            "source": {"v1.10": "controller.go"},
            "shown": "lifecycle",
        }
    ],
}


def read(folder: Path, **changes: object) -> AccessTable:
    """Return the good table with another row."""
    row = {**GOOD["access"][0], **changes}
    target = folder / "contracts" / "common"
    target.mkdir(parents=True)
    text = yaml.safe_dump({**GOOD, "access": [{k: v for k, v in row.items() if v is not None}]})
    (target / "access.yaml").write_text(text)
    return load_access(folder)


def test_a_row_is_in_the_releases_between_its_bounds(tmp_path: Path) -> None:
    table = read(tmp_path)

    assert [name for name in ("v1.8", "v1.9", "v1.13", "v1.14") if table.of(name)] == [
        "v1.9",
        "v1.13",
    ]
    (row,) = table.rows
    assert (row.permission, row.shown, row.unseen) == (GrantedBy.LABEL, AuditedTest.LIFECYCLE, "")
    assert row.manager.user == "system:serviceaccount:capi-system:capi-manager"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"manager": "nobody"}, "the manager is not defined"),
        ({"unseen": "never"}, "either shown or unseen"),
        ({"shown": None}, "either shown or unseen"),
        ({"rules": None}, "no rule requires the permission"),
        ({"manager": "other"}, "the manager has no label"),
        ({"verbs": ["read"]}, "read"),
        ({"verbs": []}, "verbs"),
        ({"shown": "somewhere"}, "somewhere"),
        ({"since": "1.9"}, "1.9"),
        ({"source": {}}, "source"),
    ],
)
def test_broken_tables_are_refused(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(UnreadableInput, match=message):
        read(tmp_path, **changes)


def test_the_rules_exist_and_hold_in_the_releases() -> None:
    for row in TABLE.rows:
        for id in row.rules:
            since = RULES[id].core.since
            assert not since or rank_core_series(row.since) >= rank_core_series(since), (
                id,
                row.purpose,
            )


def test_the_managers_are_those_of_the_rules() -> None:
    """Proves: RB-01, RB-02, RB-11."""
    core, control_plane, bootstrap = TABLE.managers
    for manager, id in ((core, "RB-01"), (control_plane, "RB-02")):
        check = RULES[id].check
        assert check is not None
        assert check.params["label"] == manager.label
        assert set(check.params["exempt"]) <= set(manager.groups)
    check = RULES["RB-11"].check
    assert check is not None
    assert (check.params["namespace"], check.params["account"]) == (
        bootstrap.namespace,
        bootstrap.account,
    )


def test_each_release_that_runs_has_a_source() -> None:
    for row in TABLE.rows:
        first = row.since or CORE.executed[0].series
        assert any(
            rank_core_series(each) <= rank_core_series(first) for each in row.sources
        ), row.purpose


@pytest.mark.parametrize("series", [each.series for each in CORE.executed])
def test_what_core_requires_of_providers_is_in_the_table(series: str) -> None:
    """The verbs of RB-03 beyond the table's: core's role has them, no release requests them."""
    check = RULES["RB-03"].check
    assert check is not None
    for each in check.params["kinds"]:
        rows = [row for row in TABLE.of(series) if each["role"] in row.kinds]
        used = {verb for row in rows if row.manager.name == "core" for verb in row.verbs}
        assert used, each["role"]
        assert used <= {*each["verbs"], "delete"}, each["role"]  # RB-05 requires delete


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_generated_roles_grant_what_the_table_says(case: Case) -> None:
    """Proves: RB-01, RB-02, RB-03, RB-05, RB-11."""
    provider = load(case.spec).provider
    assert provider is not None
    documents = [*_documents(case.expected)]
    for row in TABLE.rows:
        if row.permission is not GrantedBy.OWN:
            grants = [*_grants(row, documents)]
            for resource in provider.resources:
                if str(resource.role) in row.kinds:
                    left = find_missing(
                        grants, str(resource.group), str(resource.plural), row.verbs
                    )
                    assert not left, f"{row.manager.name}: {resource.kind}"


def test_the_cases_have_each_kind_that_providers_grant() -> None:
    providers = [load(case.spec).provider for case in CASES]
    roles = {str(each.role) for provider in providers if provider for each in provider.resources}
    kinds = {
        kind for row in TABLE.rows if row.permission is not GrantedBy.OWN for kind in row.kinds
    }
    assert kinds <= roles


def _documents(folder: Path) -> Iterator[Manifest]:
    """Yield roles and bindings of all components, with the defaults of their variables."""
    for file in sorted(folder.glob("**/config/rbac/*.yaml")):
        text = VARIABLE.sub(r"\1", file.read_text(encoding="utf-8"))
        yield from (each for each in yaml.safe_load_all(text) if "kind" in each)


def _grants(row: ManagerAccess, documents: list[Manifest]) -> Iterator[Grant]:
    """Yield what the roles that carry the manager's label, or are bound to it, allow."""
    bound = {
        each["roleRef"]["name"]
        for each in documents
        for subject in each.get("subjects", ())
        if each["kind"] == "ClusterRoleBinding" and subject["name"] == row.manager.user
    }
    for each in documents:
        if each["kind"] == "ClusterRole":
            metadata = each["metadata"]
            is_labelled = metadata.get("labels", {}).get(row.manager.label) == "true"
            if is_labelled if row.permission is GrantedBy.LABEL else metadata["name"] in bound:
                for rule in each["rules"]:
                    yield Grant(*(tuple(rule[key]) for key in ("apiGroups", "resources", "verbs")))
