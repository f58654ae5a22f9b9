"""The manager's command line."""

from __future__ import annotations

from pathlib import Path
from ssl import TLSVersion

import pytest

from capsmith_runtime.kube.tls import TLSOptions
from capsmith_runtime.options import parse, parse_duration
from capsmith_runtime.version import __version__
from capsmith_runtime.webhook.options import webhook_options


@pytest.mark.parametrize(
    ("text", "seconds"), [("15s", 15), ("1m30s", 90), ("10m", 600), ("1.5h", 5400), ("250ms", 0.25)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "15", "s", "1 m", "-1s", "1d", "1s!"])
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(text)


def test_flags_as_deployments_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proves: CC-33, MG-01, MG-05."""
    monkeypatch.setenv("POD_NAMESPACE", "here")
    options = parse(
        ["--leader-elect=true", "--v=4", "--namespace", "", "--sync-period=1m"], ["bootstrap"]
    ).with_default_namespace("default")

    assert options.leader_elect
    assert (options.verbosity, options.sync_period) == (4, 60)
    assert options.graceful_shutdown_timeout == options.hook_timeout == 300
    assert (options.own_namespace, options.lease_namespace) == ("here", "here")


def test_outside_of_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    arguments = ["--leader-elect", "--leader-elect-namespace", "leases"]
    options = parse(arguments, ["infrastructure"]).with_default_namespace("acme-system")

    assert options.leader_elect
    assert (options.own_namespace, options.lease_namespace) == ("acme-system", "leases")
    assert not parse([], ["infrastructure"]).leader_elect


def test_metrics_are_for_this_host_unless_a_flag_says_otherwise() -> None:
    assert not parse([], ["infrastructure"]).insecure_diagnostics
    assert not parse(["--insecure-diagnostics=false"], ["infrastructure"]).insecure_diagnostics
    assert parse(["--insecure-diagnostics=true"], ["infrastructure"]).insecure_diagnostics


def test_metrics_by_https_need_an_address_of_their_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    flags = ["--diagnostics-cert-dir=/certificates"]
    options = parse([*flags, "--health-addr=:9440"], ["infrastructure"])
    assert options.diagnostics.certificates == Path("/certificates")
    assert (options.diagnostics.address, options.diagnostics.health_address) == (":8443", ":9440")

    for address in ("", ":8443"):
        with pytest.raises(SystemExit):
            parse([*flags, f"--health-addr={address}"], ["infrastructure"])
        assert "--health-addr" in capsys.readouterr().err
    assert parse(["--diagnostics-cert-dir="], ["infrastructure"]).diagnostics.certificates is None


def test_one_of_several_components_has_to_be_named() -> None:
    several = ["infrastructure", "bootstrap"]
    assert parse([], ["bootstrap"]).component == "bootstrap"
    assert parse(["--component", "bootstrap"], several).component == "bootstrap"
    for arguments in ([], ["--component", "ipam"]):
        with pytest.raises(SystemExit):
            parse(arguments, several)


@pytest.mark.parametrize(
    ("arguments", "watched", "excluded"),
    [
        (["--namespace="], (), ()),
        (["--namespace=*", "--excluded-namespaces=-"], (), ()),
        (["--namespace=b,a", "--namespace", "b"], ("a", "b"), ()),
        (["--excluded-namespaces=kube-system, b"], (), ("b", "kube-system")),
    ],
)
def test_several_namespaces(
    arguments: list[str], watched: tuple[str, ...], excluded: tuple[str, ...]
) -> None:
    """Flags are repeated or have commas; marks are the defaults of clusterctl's variables.

    Proves: CC-33.
    """
    options = parse(arguments, ["infrastructure"])
    assert (options.namespaces, options.excluded_namespaces) == (watched, excluded)


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ([], ""),
        (["--watch-filter="], ""),
        (["--watch-filter=-"], ""),
        (["--watch-filter=-", "--watch-filter=b"], "b"),
    ],
)
def test_a_watch_filter_may_be_that_of_the_manifest(arguments: list[str], value: str) -> None:
    """A mark is the default of clusterctl's variable; a patch for a shard adds another flag.

    Proves: MG-01.
    """
    assert parse(arguments, ["infrastructure"]).watch_filter == value


@pytest.mark.parametrize(
    "arguments",
    [
        ["--namespace=A"],
        ["--watch-filter=a b"],
        ["--namespace=a,,b"],
        ["--excluded-namespaces=a/b"],
        ["--namespace=a", "--excluded-namespaces=b"],
        ["--leader-elect=maybe"],
        ["--concurrency", "0"],
        ["--diagnostics-address", "8443"],
        ["--sync-period", "10"],
        ["--leader-elect-lease-duration", "5s"],
        ["--logging-format", "xml"],
        ["--kube-api-qps", "-1"],
        ["--kube-api-burst", "0"],
    ],
)
def test_wrong_flags_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(arguments, ["infrastructure"])
    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("text", "default", "kinds"),
    [
        ("3", 3, {}),
        ("AcmeMachine=20,AcmeCluster=2", 10, {"AcmeMachine": 20, "AcmeCluster": 2}),
        ("AcmeMachine=20, 5", 5, {"AcmeMachine": 20}),
    ],
)
def test_concurrency_of_single_kinds(text: str, default: int, kinds: dict[str, int]) -> None:
    """Proves: MG-05."""
    options = parse(["--concurrency", text], ["infrastructure"])

    assert (options.concurrency, options.kind_concurrency) == (default, kinds)
    assert parse([], ["infrastructure"]).kind_concurrency == {}


@pytest.mark.parametrize("text", ["", "0", "a", "A=", "=3", "A=0", "1,2", "A=1,A=2", "a-b=1", "1,"])
def test_no_concurrency(text: str) -> None:
    with pytest.raises(SystemExit):
        parse(["--concurrency", text], ["infrastructure"])


def test_rates_as_deployments_write_them() -> None:
    declared = parse(["--hook-rate=declared", "--hook-burst=declared"], ["infrastructure"])
    given = parse(["--hook-rate=2.5", "--hook-burst=10"], ["infrastructure"])

    assert (declared.hook_rate, declared.hook_burst) == (None, None)
    assert (given.hook_rate, given.hook_burst) == (2.5, 10)
    assert parse(["--hook-rate=0"], ["infrastructure"]).hook_rate == 0
    for arguments in (
        ["--hook-rate=-1"],
        ["--hook-rate=nan"],
        ["--hook-rate=inf"],
        ["--hook-burst=0"],
    ):
        with pytest.raises(SystemExit):
            parse(arguments, ["infrastructure"])


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["--version"], ["infrastructure"], distribution="pytest")

    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert shown == f"pytest {pytest.__version__}, capsmith_runtime {__version__}\n"


def test_tls_and_request_limits_have_the_names_of_other_managers() -> None:
    suites = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,TLS_AES_128_GCM_SHA256"
    flags = ["--tls-min-version=VersionTLS13", f"--tls-cipher-suites={suites}"]
    options = parse([*flags, "--kube-api-qps=20.5", "--kube-api-burst=30"], ["infrastructure"])
    declared = parse(["--tls-cipher-suites=default"], ["infrastructure"])

    assert options.tls == TLSOptions(TLSVersion.TLSv1_3, "ECDHE-RSA-AES256-GCM-SHA384")
    assert options.diagnostics.tls == webhook_options(options).tls == options.tls
    assert (options.kube_api_qps, options.kube_api_burst) == (20.5, 30)
    assert declared.tls == TLSOptions(TLSVersion.TLSv1_2, "")


@pytest.mark.parametrize(
    ("flag", "listed"),
    [
        ("--tls-min-version=VersionTLS10", "VersionTLS12, VersionTLS13"),
        ("--tls-cipher-suites=ECDHE-RSA-AES256-GCM-SHA384", "TLS_AES_128_GCM_SHA256"),
        ("--tls-cipher-suites=TLS_AES_128_GCM_SHA256", "--tls-min-version"),
    ],
)
def test_unknown_tls_names_are_refused_with_the_list(
    flag: str, listed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse([flag], ["infrastructure"])
    assert listed in capsys.readouterr().err
