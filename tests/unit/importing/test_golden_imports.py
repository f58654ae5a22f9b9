"""The CRDs of each golden provider come back as the provider.yaml that they were made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from capsmith.commands.load import load, load_contracts
from capsmith.importing.compare import normalize
from capsmith.importing.importer import Imported, compare_provider, import_crds
from capsmith.importing.source import read_sources
from capsmith.manifests.parse import read_substituted
from capsmith.output.crd import build_crd
from capsmith.provider.model import Provider
from capsmith.provider_yaml.field_schemas import convert_field, convert_rule, is_required
from capsmith.provider_yaml.forms import FieldLike
from capsmith.provider_yaml.model import ProviderSpec
from capsmith.provider_yaml.parse import parse
from tests.golden.cases import Case, authored_cases, cases

_PLAIN_NAMES = {"LagoonPrefix": "IPPool"}
"""Roles of kinds whose names do not show them, as users give them."""
_CASES = [case for case in (*cases(), *authored_cases()) if case.name != "extension"]


def _crds(provider: Provider) -> str:
    return yaml.safe_dump_all(
        build_crd(resource, component, provider.former_contracts)
        for component in provider.components
        for resource in component.resources
    )


def _imported(provider: Provider) -> tuple[Imported, str]:
    contracts = {contract.version: contract for contract in load_contracts()}
    text = _crds(provider)
    manifests, findings = read_substituted(text, "crds.yaml", text)
    assert not findings
    sources = read_sources(manifests, _PLAIN_NAMES, load_contracts()[-1])
    names = (str(provider.name), str(provider.repository))
    imported = import_crds(sources, (), names, contracts)
    return imported, text


def _fields(fields: Mapping[str, FieldLike] | None) -> dict[str, Any]:
    return {
        name: (normalize(convert_field(field)), is_required(field))
        for name, field in (fields or {}).items()
    }


def _own(spec: ProviderSpec) -> dict[str, Any]:
    return {
        kind: {
            "section": section,
            "implements": described.implements,
            "spec": _fields(described.spec),
            "status": _fields(described.status),
            "validations": sorted(str(convert_rule(rule)) for rule in described.validations or ()),
            "printerColumns": described.printer_columns or (),
        }
        for section, kind, described in spec.kinds()
    }


def _sources(spec: ProviderSpec) -> dict[str, set[str]]:
    """Return the kinds from which identities of a kind may be derived."""
    identities = (each for _, each in spec.identities() if not isinstance(each, str))
    return {each.kind: set(each.sources) for each in identities if each.sources}


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.name)
def test_the_fields_of_a_golden_provider_come_back(case: Case) -> None:
    loaded = load(case.spec)
    assert loaded.provider is not None
    original = parse(case.spec.read_text(encoding="utf-8"), "provider.yaml").spec
    imported, _ = _imported(loaded.provider)
    again = parse(imported.text, "provider.yaml")
    assert again.spec is not None, again.findings
    assert original is not None
    assert _own(again.spec) == _own(original)
    assert _sources(again.spec) == _sources(original)
    assert not imported.refusals


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.name)
def test_the_crds_of_a_golden_provider_are_generated_again(case: Case) -> None:
    loaded = load(case.spec)
    assert loaded.provider is not None
    imported, text = _imported(loaded.provider)
    differences = {each.crd.kind: each.differences for each in imported.crds if each.differences}
    assert not differences
    assert len(imported.crds) == text.count("\nkind: CustomResourceDefinition")
    manifests, _ = read_substituted(text, "crds.yaml", text)
    sources = read_sources(manifests, {}, load_contracts()[-1])
    compared = compare_provider(sources, loaded.provider)
    assert not [each.crd.kind for each in compared if each.differences]
