"""Certificates and kubeconfigs of clusters: renewed in time, and created again when needed."""

from __future__ import annotations

from capsmith_runtime.contract.model import Endpoint
from capsmith_runtime.controlplane.secrets.certificates import (
    KeyPair,
    create_authority,
    is_signed_by,
    read_validity,
)
from tests.realapi.cluster_secrets.conftest import Run
from tests.realapi.secret_keeping import NAMESPACE, NOW, SUFFIXES, Keeping, days

TLS = "kubernetes.io/tls"


def tls(pair: KeyPair) -> dict[str, bytes]:
    """Return the data of a Secret with certificate and key."""
    return {"tls.crt": pair.certificate, "tls.key": pair.key}


def test_the_kubeconfig_is_renewed_at_half_of_its_life(run: Run) -> None:
    """Proves: SEC-01."""

    async def test(kept: Keeping) -> None:
        first = (await kept.ensure()).renewal
        assert first is not None
        content = kept.data("kubeconfig", "value")

        kept.now = first - days(1)
        report = await kept.ensure()
        assert kept.data("kubeconfig", "value") == content
        assert report.seconds_to_renewal(within=600.0) is None
        assert report.seconds_to_renewal(within=2 * 86400.0) == 86400.0
        assert report.seconds_to_renewal(within=0.0) == 86400.0

        kept.now = first
        report = await kept.ensure()
        assert kept.data("kubeconfig", "value") != content
        assert read_validity(kept.access().certificate).end == first + days(365)
        assert report.renewal is not None
        assert report.renewal > first + days(182)
        assert kept.access().authority == kept.data("ca", "tls.crt")

    run(test)


def test_nothing_is_renewed_that_would_end_no_later(run: Run) -> None:
    async def test(kept: Keeping) -> None:
        await kept.ensure()
        end = read_validity(kept.data("ca", "tls.crt")).end

        kept.now = end - days(40)
        report = await kept.ensure()
        assert report.renewal is None
        assert read_validity(kept.access().certificate).end == end
        assert report.message == (
            f"The certificate in Secret {kept.name}-ca ends at {end:%Y-%m-%dT%H:%M:%SZ}; "
            f"The certificate in Secret {kept.name}-etcd ends at {end:%Y-%m-%dT%H:%M:%SZ}; "
            f"The certificate in Secret {kept.name}-proxy ends at {end:%Y-%m-%dT%H:%M:%SZ}"
        )
        kept.now = end - days(5)
        assert await kept.requests() == 0

        kept.now = end
        waiting = (await kept.ensure()).waiting
        assert waiting is not None
        assert f"Secret {kept.name}-ca cannot be used: its certificate has expired" in (
            waiting.message
        )

    run(test)


def test_a_new_endpoint_makes_a_new_kubeconfig(run: Run) -> None:
    """Proves: SEC-01."""

    async def test(kept: Keeping) -> None:
        await kept.ensure()
        kept.endpoint = Endpoint("api.test", 443)

        await kept.ensure()

        assert kept.access().server == "https://api.test:443"

    run(test)


def test_a_new_authority_makes_a_new_kubeconfig(run: Run) -> None:
    """Proves: SEC-01."""

    async def test(kept: Keeping) -> None:
        await kept.ensure()
        other = create_authority("kubernetes", NOW)
        kept.woken.clear()
        kept.api.delete(kept.get("ca"))
        kept.bring("ca", TLS, tls(other))
        await kept.watched("ca")
        assert kept.woken

        await kept.ensure(generate=False)

        assert kept.access().authority == other.certificate
        assert is_signed_by(kept.access().certificate, other.certificate)

    run(test)


def test_a_deleted_kubeconfig_is_created_again(run: Run) -> None:
    """Proves: SEC-01."""

    async def test(kept: Keeping) -> None:
        await kept.ensure()
        authority = kept.data("ca", "tls.crt")
        for suffix in SUFFIXES:
            await kept.watched(suffix)
        kept.woken.clear()

        kept.api.delete(kept.get("kubeconfig"))
        await kept.watched("kubeconfig")
        assert kept.woken == [(NAMESPACE, kept.name)]
        await kept.ensure(generate=False)

        assert kept.access().authority == authority

    run(test)


def test_a_broken_kubeconfig_is_created_again(run: Run) -> None:
    async def test(kept: Keeping) -> None:
        await kept.ensure()
        kept.api.patch(kept.get("kubeconfig"), {"data": {"value": "bm9uc2Vuc2U="}})
        await kept.watched("kubeconfig")

        await kept.ensure()

        assert kept.access().server == "https://10.0.0.1:6443"

    run(test)


def test_keys_in_use_are_never_generated_again(run: Run) -> None:
    """Proves: SEC-03."""

    async def test(kept: Keeping) -> None:
        await kept.ensure()
        for suffix in ("ca", "sa"):
            kept.api.delete(kept.get(suffix))
            await kept.watched(suffix)

        waiting = (await kept.ensure(generate=False)).waiting

        assert waiting is not None
        assert waiting.reason == "CertificatesNotUsable"
        assert waiting.message == (
            f"Secret {kept.name}-ca is missing and must be restored; "
            f"Secret {kept.name}-sa is missing and must be restored"
        )
        assert kept.find("ca") is None

    run(test)
