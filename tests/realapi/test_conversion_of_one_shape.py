"""Several API versions of one contract where releases had two: a webhook has to convert them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.wait import NotYet, eventually
from capsmith.commands.load import load_text
from tests.golden.cases import Case, generated
from tests.importing import importable
from tests.realapi.crd_lineage import crds_of, migrated, removed, upgraded
from tests.realapi.webhook import Webhook

PACKAGE = "cluster_api_provider_quay"
GROUP = "infrastructure.quay.example.com"
BEFORE, OTHER, STORED = (f"{GROUP}/{name}" for name in ("v1alpha1", "v1alpha2", "v1alpha3"))
_KINDS = ("QuayCluster", "QuayMachine")
_SPEC = """\
capsmith: 1
name: quay
repository: https://github.com/quay/cluster-api-provider-quay
contracts: [{contracts}]
releases: {{v0.1: v1beta1, v0.2: v1beta2}}
apiVersions:
{versions}
groups: {{infrastructure: {group}}}
infrastructure:
  QuayCluster: {{implements: InfraCluster}}
  QuayMachine:
    implements: InfraMachine
    spec: {{size: string!}}
"""
_BOTH = """\
  - {name: v1alpha1, contract: v1beta1}
  - {name: v1alpha3, contract: v1beta2, storage: true}
"""
_ONE = """\
  - {name: v1alpha2}
  - {name: v1alpha3, storage: true}
"""


@pytest.fixture(scope="module")
def webhook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Webhook, list[JSON]]]:
    """Return the webhook of the later release, and the CRDs of both releases in their order."""
    folder = tmp_path_factory.mktemp("one-shape")
    before = _SPEC.format(contracts="v1beta1, v1beta2", versions=_BOTH, group=GROUP)
    after = _SPEC.format(contracts="v1beta2", versions=_ONE, group=GROUP)
    crds = [crd for text in (before, after) for crd in _crds(text)]
    (folder / "provider.yaml").write_text(after)
    generated(Case("one-shape", folder / "provider.yaml"), folder / "repository")
    with importable(folder / "repository" / "src", PACKAGE):
        made = Webhook(PACKAGE, folder / "certificates")
        made.start()
        yield made, crds
        made.stop()


def test_written_in_one_read_in_the_other(
    api: KubeClient, webhook: tuple[Webhook, list[JSON]]
) -> None:
    """Proves: CRD-15, CRD-16."""
    served, crds = webhook
    for crd in crds:
        served.turn(crd)
        migrated(api, upgraded(api, crd))
    obj: JSON = {
        "apiVersion": OTHER,
        "kind": "QuayMachine",
        "metadata": {"name": "one", "namespace": "default", "annotations": {"mine": "1"}},
        "spec": {"size": "s"},
    }
    eventually(lambda: _taken(api, obj))
    status: JSON = {"initialization": {"provisioned": True}}
    api.patch(obj, {"status": status}, subresource="status")

    stored, other = (api.get(each, "QuayMachine", "one", "default") for each in (STORED, OTHER))

    assert stored == {**other, "apiVersion": STORED}
    assert (stored["spec"], stored["status"]) == ({"size": "s"}, status)
    assert stored["metadata"]["annotations"] == {"mine": "1"}
    eventually(lambda: _is_gone(api, BEFORE))
    api.delete(stored)
    removed(api, {crd["metadata"]["name"] for crd in crds})


def _crds(text: str) -> Iterator[JSON]:
    provider = load_text(text, "provider.yaml").provider
    assert provider is not None
    return crds_of(provider, _KINDS)


def _taken(api: KubeClient, obj: JSON) -> bool:
    """Versions are served a moment after their CRD is there."""
    try:
        api.create(obj)
    except LookupError as error:
        raise NotYet(str(error)) from error
    return True


def _is_gone(api: KubeClient, api_version: str) -> bool:
    try:
        api.list(api_version, "QuayMachine")
    except LookupError:
        return True
    except ApiError as error:
        return error.status == 404
    return False
