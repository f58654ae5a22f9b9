"""Records of identities, which only managers may write: they keep identities from being deleted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from tests.golden.cases import Case, cases


def list_policed(case: Case) -> set[str]:
    """Return the resources whose records a generated policy protects."""
    return {
        resource
        for file in case.expected.rglob("admission/ids.yaml")
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8"))
        for rule in document["spec"].get("matchConstraints", {}).get("resourceRules", ())
        for resource in rule["resources"]
    }


def list_users(case: Case) -> Iterator[str]:
    """Yield the resources of a generated repository whose objects name an identity."""
    for file in sorted(case.expected.rglob("crd/bases/*.yaml")):
        crd = yaml.safe_load(file.read_text(encoding="utf-8"))["spec"]
        schemas = (each["schema"]["openAPIV3Schema"] for each in crd["versions"])
        specs = (each["properties"].get("spec", {}) for each in schemas)
        if any("identityRef" in spec.get("properties", {}) for spec in specs):
            yield crd["names"]["plural"]


USERS = [
    pytest.param(case, resource, id=f"{case.name}-{resource}")
    for case in cases()
    for resource in list_users(case)
]


@pytest.mark.parametrize(("case", "resource"), USERS)
def test_the_records_of_each_user_of_identities_are_protected(case: Case, resource: str) -> None:
    assert resource in list_policed(case)


def test_kinds_of_each_type_use_identities() -> None:
    """Otherwise the test above could pass without them."""
    resources = {str(each.values[1]) for each in USERS}
    for part in ("clusters", "controlplanes", "prefixes", "lamps"):
        assert any(each.endswith(part) for each in resources), (part, resources)
