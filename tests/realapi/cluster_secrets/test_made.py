"""Certificates and kubeconfigs of clusters: made once, found again, restored."""

from __future__ import annotations

import asyncio

import yaml

from capsmith_runtime.contract.model import Endpoint
from capsmith_runtime.controlplane.secrets.certificates import is_signed_by, read_validity
from tests.realapi.cluster_secrets.conftest import Run
from tests.realapi.secret_keeping import LABEL, NOW, SUFFIXES, Keeping, days

OURS = "cluster.x-k8s.io/secret"


def test_everything_is_made_once(run: Run) -> None:
    """Proves: CP-22, CP-23, SEC-01, SEC-03."""

    async def test(kept: Keeping) -> None:
        report = await kept.ensure()

        assert report.waiting is None
        assert report.renewal == read_validity(kept.access().certificate).half_life
        for suffix in SUFFIXES:
            secret = kept.get(suffix)
            assert secret["type"] == OURS
            assert secret["metadata"]["labels"] == {LABEL: kept.name}
            (owner,) = secret["metadata"]["ownerReferences"]
            assert (owner["name"], owner["uid"]) == (f"{kept.name}-cp", kept.uid)
            assert owner["controller"]
            keys = {"value"} if suffix == "kubeconfig" else {"tls.crt", "tls.key"}
            assert set(secret["data"]) == keys
        assert await kept.requests() == 0

    run(test)


def test_the_kubeconfig_leads_to_the_endpoint(run: Run) -> None:
    """Proves: CP-22, SEC-01, SEC-07."""

    async def test(kept: Keeping) -> None:
        await kept.ensure()

        access = kept.access()
        assert access.server == "https://10.0.0.1:6443"
        (user,) = yaml.safe_load(kept.data("kubeconfig", "value"))["users"]
        assert set(user["user"]) == {"client-certificate-data", "client-key-data"}
        assert access.authority == kept.data("ca", "tls.crt")
        assert is_signed_by(access.certificate, access.authority)
        assert read_validity(access.certificate).end == NOW + days(365)

    run(test)


def test_the_kubeconfig_waits_for_the_endpoint(run: Run) -> None:
    async def test(kept: Keeping) -> None:
        kept.endpoint = None
        assert (await kept.ensure()).waiting is None
        assert kept.find("kubeconfig") is None

        kept.endpoint = Endpoint("fd00::1", 443)
        await kept.ensure()
        assert kept.access().server == "https://[fd00::1]:443"

    run(test)


def test_two_at_a_time_make_one_authority(run: Run) -> None:
    """Proves: SEC-03."""

    async def test(kept: Keeping) -> None:
        await asyncio.gather(*(kept.ensure() for _ in range(5)))
        await kept.ensure()

        assert kept.access().authority == kept.data("ca", "tls.crt")
        assert is_signed_by(kept.access().certificate, kept.data("ca", "tls.crt"))

    run(test)


def test_after_a_move_everything_is_found_again(run: Run) -> None:
    """Proves: SEC-05, SM-07, MV-08."""

    async def test(kept: Keeping) -> None:
        await kept.ensure()
        before = {suffix: kept.get(suffix)["data"] for suffix in SUFFIXES}
        kept.uid = "uid-in-another-management-cluster"

        assert (await kept.ensure()).waiting is None

        for suffix in SUFFIXES:
            secret = kept.get(suffix)
            (owner,) = secret["metadata"]["ownerReferences"]
            assert owner["uid"] == kept.uid
            assert secret["data"] == before[suffix]
        assert await kept.requests() == 0

    run(test)


def test_managed_secrets_get_missing_metadata(run: Run) -> None:
    """Proves: SEC-01, SEC-03."""

    async def test(kept: Keeping) -> None:
        await kept.ensure()
        others = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "y"}
        for suffix in ("ca", "kubeconfig"):
            metadata = {"labels": {LABEL: None, "own": "1"}, "ownerReferences": [others]}
            kept.api.patch(kept.get(suffix), {"metadata": metadata})
            await kept.watched(suffix)

        await kept.ensure()

        for suffix in ("ca", "kubeconfig"):
            metadata = kept.get(suffix)["metadata"]
            assert metadata["labels"] == {LABEL: kept.name, "own": "1"}
            assert [each["name"] for each in metadata["ownerReferences"]] == [
                "x",
                f"{kept.name}-cp",
            ]

    run(test)


def test_no_private_key_is_kept_in_memory(run: Run) -> None:
    async def test(kept: Keeping) -> None:
        await kept.ensure()
        for suffix in SUFFIXES:
            await kept.watched(suffix)

        kept.api.patch(kept.get("ca"), {"metadata": {"annotations": {"a": "b"}}})
        await kept.watched("ca")
        cached = kept.store.informer.items()

        assert len(cached) >= len(SUFFIXES)
        assert all("data" not in each for each in cached)

    run(test)
