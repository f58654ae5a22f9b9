"""Whatever an author does to API versions, clusterctl can install the next release."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from capsmith.clusters.processes.kube import JSON, KubeClient
from capsmith.commands.load import Loaded, load_text
from capsmith.commands.upgrade import apply_request
from capsmith.findings import has_errors
from capsmith.output.webhooks import list_converted_resources
from capsmith.provider.model import Provider
from capsmith.provider.versions import rank_series
from capsmith.provider_upgrade.request import UpgradeRequest
from tests.realapi.crd_lineage import check_labels, crds_of, migrated, removed, upgraded

OLD, NEW = "v1beta1", "v1beta2"
FILE = "provider.yaml"
_TEXT = """\
capsmith: 1
name: acme
repository: https://github.com/acme/cluster-api-provider-acme
contracts: [{contract}]
releases: {{v0.1: {contract}}}
apiVersions: [{versions}]
groups: {{infrastructure: i{number}.example.com, bootstrap: b{number}.example.com}}
infrastructure:
  AcmeCluster: {{implements: InfraCluster}}
  AcmeMachine: {{implements: InfraMachine}}
bootstrap:
  AcmeConfig: {{implements: BootstrapConfig}}
credentials: AcmeIdentity
"""
_KINDS = ("AcmeCluster", "AcmeClusterTemplate", "AcmeConfigTemplate", "AcmeIdentity")
"""Those whose shape differs between the contracts, differs by a feature, and never differs."""
_NUMBERS = itertools.count()
_NAMES = ("v1alpha1", "v1alpha2", "v1alpha3", "v1beta1", "v1beta2", "v1", "v2", "v3", "v4")

Data = dict[str, Any]
Move = Callable[[str], str | None]
"""The text of provider.yaml -> that of the next release, or None where it makes no sense."""


def _wish(**wishes: Any) -> Move:
    """A command."""

    def move(text: str) -> str | None:
        return _valid(apply_request(load_text(text, FILE), UpgradeRequest(**wishes), FILE), text)

    return move


def _edit(edit: Callable[[Data], None]) -> Move:
    """What an author writes; a release of its own."""

    def move(text: str) -> str | None:
        data = yaml.safe_load(text)
        data["apiVersions"] = [
            {"name": each} if isinstance(each, str) else each for each in data["apiVersions"]
        ]
        edit(data)
        newest = max(data["releases"], key=rank_series)
        data["releases"][f"v0.{rank_series(newest)[1] + 1}"] = max(data["contracts"])
        fresh = yaml.safe_dump(data, sort_keys=False)
        return _valid(load_text(fresh, FILE), text)

    return move


def _valid(loaded: Loaded, before: str) -> str | None:
    possible = loaded.provider is not None and not has_errors(loaded.findings)
    return loaded.text if possible and loaded.text != before else None


def _add(data: Data, *, stored: bool) -> None:
    versions = data["apiVersions"]
    names = [each["name"] for each in versions]
    if stored:
        for each in versions:
            each["storage"] = False
    elif not any("storage" in each for each in versions):
        versions[-1]["storage"] = True
    fresh = next(name for name in _NAMES if name not in names)
    versions.append({"name": fresh, "contract": max(data["contracts"]), "storage": stored})


def _serve_no_more(data: Data) -> None:
    data["apiVersions"][0]["served"] = False


def _drop(data: Data) -> None:
    """The author's own way, without the command."""
    data["apiVersions"] = [each for each in data["apiVersions"] if each.get("served", True)]


def _toggle(data: Data) -> None:
    """A feature that makes the difference between the shapes of a template."""
    features = data["infrastructure"]["AcmeCluster"].setdefault("features", {})
    features["controlPlaneEndpoint"] = not features.get("controlPlaneEndpoint", True)


MOVES: dict[str, Move] = {
    "both": _wish(contracts=(OLD, NEW)),
    "newer": _wish(contracts=(NEW,)),
    "in-place": _wish(contracts=(NEW,), keep_api_version=True),
    "add": _edit(lambda data: _add(data, stored=False)),
    "add-stored": _edit(lambda data: _add(data, stored=True)),
    "unserve": _edit(_serve_no_more),
    "drop": _edit(_drop),
    "toggle": _edit(_toggle),
}


@pytest.mark.parametrize(
    ("contract", "versions", "moves"),
    [
        (NEW, "v1alpha1", "add-stored unserve drop"),
        (OLD, "v1alpha1", "both newer drop"),
        (OLD, "v1alpha1, v1alpha2", "both newer drop"),
        (OLD, "v1alpha1", "add-stored both newer drop"),
        (OLD, "v1alpha1", "both add newer drop"),
        (OLD, "v1alpha1", "both newer add-stored drop unserve drop"),
        (OLD, "v1alpha1", "both newer drop add-stored unserve drop"),
        (OLD, "v1alpha1", "in-place add-stored unserve drop"),
        (OLD, "v1alpha1, v1alpha2", "in-place unserve drop"),
        (OLD, "v1alpha1", "both toggle newer drop"),
    ],
)
def test_ways(api: KubeClient, contract: str, versions: str, moves: str) -> None:
    """Proves: CRD-15, CRD-16, GEN-02, GEN-06."""
    named = moves.split()
    assert _walked(api, contract, versions, named) == named


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    contract=st.sampled_from([OLD, NEW]),
    versions=st.sampled_from(["v1alpha1", "v1alpha1, v1alpha2", "v1alpha1, v1beta1, v1"]),
    moves=st.lists(st.sampled_from(sorted(MOVES)), min_size=2, max_size=9),
)
def test_any_way(api: KubeClient, contract: str, versions: str, moves: list[str]) -> None:
    """Proves: CRD-15, CRD-16, GEN-02, GEN-06."""
    _walked(api, contract, versions, moves)


def _walked(api: KubeClient, contract: str, versions: str, moves: list[str]) -> list[str]:
    """The moves that made a release."""
    text = _TEXT.format(contract=contract, versions=versions, number=next(_NUMBERS))
    done, names = [], _released(api, text)
    for name in moves:
        after = MOVES[name](text)
        if after is not None:
            done.append(name)
            text = after
            assert _released(api, text) == names
    removed(api, names)
    return done


def _released(api: KubeClient, text: str) -> list[str]:
    """The names of the CRDs of a release, which are installed and as they have to be."""
    provider = load_text(text, FILE).provider
    assert provider is not None
    wanted = list(crds_of(provider, _KINDS))
    answering = _answering(provider)
    for crd in wanted:
        installed = upgraded(api, crd)
        assert [each["name"] for each in installed["spec"]["versions"]] == [
            each["name"] for each in crd["spec"]["versions"]
        ]
        check_labels(installed)
        _check_conversion(installed, answering)
        migrated(api, installed)
    return [crd["metadata"]["name"] for crd in wanted]


def _answering(provider: Provider) -> set[str]:
    """The CRDs of which a manager converts objects."""
    return {
        str(resource.crd_name)
        for component in provider.components
        for resource in list_converted_resources(component, provider)
    }


def _check_conversion(crd: JSON, answering: set[str]) -> None:
    """Whom the API server asks, answers; and whose shapes differ, is asked."""
    versions, name = crd["spec"]["versions"], crd["metadata"]["name"]
    is_asked = crd["spec"]["conversion"]["strategy"] == "Webhook" and len(versions) > 1
    assert is_asked == (name in answering), name
