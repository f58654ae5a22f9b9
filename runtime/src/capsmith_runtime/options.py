"""The manager's command line, with the names that Cluster API's own managers use (MG-01…05)."""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from ssl import TLSVersion
from typing import Final, Protocol

from capsmith_runtime.features import describe_feature_gates, parse_feature_gates
from capsmith_runtime.kube.diagnostics import DiagnosticsOptions, parse_address
from capsmith_runtime.kube.leaderelection import LeaseTimings
from capsmith_runtime.kube.request_limit import BURST
from capsmith_runtime.kube.tls import (
    DEFAULT_TLS,
    VERSIONS,
    TLSOptions,
    parse_cipher_suites,
    parse_tls_version,
)
from capsmith_runtime.version import read_build

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_CONCURRENCY: Final = 10
_DECLARED: Final = "declared"
_DEFAULT: Final = "default"
"""Defaults of flags that must not be empty: clusterctl requires a value for such variables."""
_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """A manager's command-line options; all times are in seconds."""

    component: str = ""
    """Type of the provider to run."""
    namespaces: tuple[str, ...] = ()
    """The namespaces to watch, or empty for all."""
    excluded_namespaces: tuple[str, ...] = ()
    """The namespaces not to watch, if all others are watched."""
    watch_filter: str = ""
    own_namespace: str = ""
    leader_elect: bool = False
    lease_namespace: str = ""
    timings: LeaseTimings = field(default_factory=LeaseTimings)
    diagnostics_address: str = ":8443"
    insecure_diagnostics: bool = False
    """Whether to serve metrics over HTTP to all clients, not only to clients on this host."""
    health_address: str = ""
    """Address of the probes, or an empty string to serve them on the diagnostics address."""
    diagnostics_certificates: Path | None = None
    """Folder with the certificate for serving metrics over HTTPS, or None to use HTTP."""
    tls: TLSOptions = DEFAULT_TLS
    """Lowest TLS version and cipher suites of the servers for metrics and webhooks."""
    kube_api_qps: float = 0.0
    """Requests to the management cluster's API server per second; 0 means unlimited."""
    kube_api_burst: int = BURST
    concurrency: int = 10
    """Number of concurrent reconciles for each kind that `kind_concurrency` does not name."""
    kind_concurrency: Mapping[str, int] = field(default_factory=dict)
    hook_rate: float | None = None
    """Maximum calls to the author's methods per second for each identity.

    0 means unlimited; None means the rate that the author's session factory declares.
    """
    hook_burst: int | None = None
    sync_period: float = 600.0
    status_debounce: float = 2.0
    """Seconds that a wait must last before its reason is written into the status."""
    hook_timeout: float = 300.0
    hook_threads: int = 32
    graceful_shutdown_timeout: float = 300.0
    """Seconds for which a stopping manager waits for running reconciles."""
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    """Values of feature gates, keyed by name; gates not listed have their default value."""
    verbosity: int = 2
    logging_format: str = "text"
    kubeconfig: str = ""
    extra: Mapping[str, object] = field(default_factory=dict)
    """Values of the flags that ``ExtraFlags`` add, keyed by ``ExtraFlags.name``."""

    def concurrency_of(self, kind: str) -> int:
        """Return the maximum number of concurrent reconciles for a kind."""
        return self.kind_concurrency.get(kind, self.concurrency)

    @property
    def diagnostics(self) -> DiagnosticsOptions:
        """Return the addresses and certificates of the probe and metrics servers."""
        return DiagnosticsOptions(
            address=self.diagnostics_address,
            health_address=self.health_address,
            certificates=self.diagnostics_certificates,
            insecure=self.insecure_diagnostics,
            tls=self.tls,
        )

    def with_default_namespace(self, namespace: str) -> Options:
        """Return a copy with ``namespace``, unless the environment or a flag already sets one."""
        # Only as a default: the Downward API and flags name the namespace that the manager really
        # runs in.
        own = self.own_namespace or namespace
        return replace(self, own_namespace=own, lease_namespace=self.lease_namespace or own)


class ExtraFlags(Protocol):
    """Protocol for command-line flags that only some providers' managers have."""

    @property
    def name(self) -> str:
        """Return the key for these flags' values in :attr:`Options.extra`."""
        ...

    def add(self, parser: argparse.ArgumentParser) -> None:
        """Add these flags to the parser."""
        ...

    def read(self, found: argparse.Namespace) -> object:
        """Return the value for :attr:`Options.extra`, taken from the parsed arguments."""
        ...


def parse(
    arguments: Sequence[str] | None,
    components: Sequence[str],
    extras: Sequence[ExtraFlags] = (),
    distribution: str = "",
) -> Options:
    """Parse a command line; exit with a usage message if it is invalid.

    The component need not be named if there is only one. If ``distribution`` (the name of the
    provider's distribution) is set, ``--version`` prints its version and exits.
    """
    parser = _parser(components, extras, distribution)
    found = parser.parse_args(arguments)
    own = os.environ.get("POD_NAMESPACE", "")
    _reject_contradictions(parser, found)
    return Options(
        component=found.component,
        namespaces=_read_names(found.namespace),
        excluded_namespaces=_read_names(found.excluded_namespaces),
        watch_filter=found.watch_filter,
        own_namespace=own,
        leader_elect=found.leader_elect,
        lease_namespace=found.leader_elect_namespace or own,
        timings=_read_timings(parser, found),
        diagnostics_address=found.diagnostics_address,
        insecure_diagnostics=found.insecure_diagnostics,
        health_address=found.health_addr,
        diagnostics_certificates=found.diagnostics_cert_dir,
        tls=TLSOptions(found.tls_min_version, found.tls_cipher_suites),
        kube_api_qps=found.kube_api_qps,
        kube_api_burst=found.kube_api_burst,
        concurrency=found.concurrency.pop("", _CONCURRENCY),
        kind_concurrency=found.concurrency,
        hook_rate=found.hook_rate,
        hook_burst=found.hook_burst,
        sync_period=found.sync_period,
        hook_timeout=found.hook_timeout,
        hook_threads=found.hook_threads,
        graceful_shutdown_timeout=found.graceful_shutdown_timeout,
        feature_gates=found.feature_gates,
        verbosity=found.v,
        logging_format=found.logging_format,
        kubeconfig=found.kubeconfig,
        extra={each.name: each.read(found) for each in extras},
    )


def _reject_contradictions(parser: argparse.ArgumentParser, found: argparse.Namespace) -> None:
    if found.diagnostics_cert_dir and found.health_addr in ("", found.diagnostics_address):
        parser.error("--diagnostics-cert-dir requires --health-addr: probes are served over HTTP")
    if _read_names(found.namespace) and _read_names(found.excluded_namespaces):
        parser.error("--namespace already excludes all other namespaces")


def _read_timings(parser: argparse.ArgumentParser, found: argparse.Namespace) -> LeaseTimings:
    try:
        return LeaseTimings(
            found.leader_elect_lease_duration,
            found.leader_elect_renew_deadline,
            found.leader_elect_retry_period,
        )
    except ValueError as error:
        parser.error(str(error))


def parse_duration(text: str) -> float:
    """Return the seconds in a duration such as ``1m30s``.

    Raises ValueError for any other string, including a number without a unit.
    """
    # Anything that is left after removing all valid parts makes the duration invalid.
    if not text or _PART.sub("", text):
        raise ValueError(f"not a duration such as 10s or 1m30s: {text!r}")
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))


def _versions(distribution: str) -> str:
    build = read_build(distribution)
    return f"{build.provider} {build.version}, capsmith_runtime {build.runtime}"


def _parser(
    components: Sequence[str], extras: Sequence[ExtraFlags] = (), distribution: str = ""
) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="manager", description="Cluster API provider.")
    add = parser.add_argument
    only, several = (components[0], False) if len(components) == 1 else (None, True)
    add("--component", choices=components, default=only, required=several, help="provider to run")
    _add_namespace_flags(parser)
    filtered = "reconcile only objects whose watch-filter label has this value; all if empty or -"
    add("--watch-filter", default="", type=_label_value, metavar="VALUE", help=filtered)
    _add_leader_flags(parser)
    _add_diagnostics_flags(parser)
    each = "concurrent reconciles of each kind, with exceptions: 10,AcmeMachine=20"
    add("--concurrency", default=str(_CONCURRENCY), type=_concurrency, help=each)
    period = "interval of reconciles without an event; 0s: none"
    add("--sync-period", default=600.0, type=parse_duration, help=period)
    _add_hook_flags(parser)
    stop = "time limit for running reconciles when the manager stops"
    add("--graceful-shutdown-timeout", default=300.0, type=parse_duration, help=stop)
    _add_kube_flags(parser)
    gates = f"A=true,B=false {describe_feature_gates()}".strip().replace("%", "%%")
    add("--feature-gates", default=_DECLARED, type=_feature_gates, metavar="GATES", help=gates)
    if distribution:
        add("--version", action="version", version=_versions(distribution))
    for extra in extras:
        extra.add(parser)
    add("-v", "--v", default=2, type=int, metavar="LEVEL", help="verbosity; 4 and above is debug")
    add("--logging-format", default="text", choices=("text", "json"))
    return parser


def _add_hook_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    timeout = "time limit for one call of your code"
    add("--hook-timeout", default=300.0, type=parse_duration, help=timeout)
    add("--hook-threads", default=32, type=_positive, help="concurrent synchronous calls")
    rate = "calls of your code per second and identity; 0: unlimited"
    add("--hook-rate", default=_DECLARED, type=_rate, help=rate)
    burst = "calls that may start at once, before the rate applies"
    add("--hook-burst", default=_DECLARED, type=_burst, help=burst)


def _add_namespace_flags(parser: argparse.ArgumentParser) -> None:
    for flag, help in (
        ("--namespace", "watch only these namespaces, with commas between them; all if empty or *"),
        ("--excluded-namespaces", "watch all namespaces but these; none if empty or -"),
    ):
        parser.add_argument(
            flag, default=[], action="append", type=_namespaces, metavar="NAMES", help=help
        )


def _read_names(found: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the names of all occurrences of a flag, sorted and each once."""
    return tuple(sorted({name for names in found for name in names}))


def _add_kube_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    rate = "requests to the API server per second; 0: unlimited"
    add("--kube-api-qps", default=0.0, type=_requests_per_second, metavar="QPS", help=rate)
    burst = "requests to the API server that may start at once"
    add("--kube-api-burst", default=BURST, type=_positive, metavar="NUMBER", help=burst)
    path = "path of a kubeconfig; by default KUBECONFIG, or in-cluster"
    add("--kubeconfig", default="", help=path)


def _add_diagnostics_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--diagnostics-address", default=":8443", type=_address, help="address of metrics")
    _add_switch(parser, "--insecure-diagnostics", help="serve metrics to other hosts, without TLS")
    certificates = "tls.crt and tls.key, to serve metrics over HTTPS to authorized clients"
    add("--diagnostics-cert-dir", default=None, type=_folder, metavar="DIR", help=certificates)
    probes = "address of health probes; by default that of metrics"
    add("--health-addr", default="", type=_optional_address, help=probes)
    versions = f"lowest TLS version of metrics and webhooks: {', '.join(VERSIONS)}"
    add("--tls-min-version", default="VersionTLS12", type=_tls_version, help=versions)
    suites = "cipher suites for TLS 1.2 by Go's names, with commas between them"
    add("--tls-cipher-suites", default=_DEFAULT, type=_cipher_suites, help=suites)


def _add_leader_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _add_switch(parser, "--leader-elect")
    add("--leader-elect-lease-duration", default=15.0, type=parse_duration)
    add("--leader-elect-renew-deadline", default=10.0, type=parse_duration)
    add("--leader-elect-retry-period", default=2.0, type=parse_duration)
    add("--leader-elect-namespace", default="", help="where the Lease is; by default POD_NAMESPACE")


def _add_switch(parser: argparse.ArgumentParser, flag: str, help: str | None = None) -> None:
    # Deployments write --leader-elect as well as --leader-elect=true.
    parser.add_argument(flag, nargs="?", const=True, default=False, type=_boolean, help=help)


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(f"neither true nor false: {text!r}")
    return text == "true"


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(f"not a positive number: {text!r}")
    return number


def _namespaces(text: str) -> list[str]:
    # "*" and "-" are the defaults of clusterctl variables, which must not be empty; no namespace
    # has these names.
    if text in ("", "*", "-"):
        return []
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if not _LABEL.fullmatch(name):
            raise ValueError(f"not the name of a namespace: {name!r}")
    return names


def _label_value(text: str) -> str:
    # "-" is the default of a clusterctl variable, as above; no label has this value.
    if text in ("", "-"):
        return ""
    if not _LABEL_VALUE.fullmatch(text):
        raise ValueError(f"not the value of a label: {text!r}")
    return text


def _concurrency(text: str) -> dict[str, int]:
    """Return numbers by kind; the key "" has the number for all other kinds, if there is one."""
    numbers: dict[str, int] = {}
    for part in text.split(","):
        kind, separator, number = part.strip().rpartition("=")
        if bool(separator) != bool(_KIND.fullmatch(kind)) or kind in numbers:
            raise ValueError(f"neither a number nor Kind=number, each once: {part!r}")
        numbers[kind] = _positive(number)
    return numbers


def _rate(text: str) -> float | None:
    """Return calls per second, or None for the rate that the author's session factory declares."""
    if text == _DECLARED:
        return None
    return _requests_per_second(text)


def _requests_per_second(text: str) -> float:
    rate = float(text)
    if not 0 <= rate < math.inf:
        raise ValueError(f"neither 0 nor positive: {text!r}")
    return rate


def _feature_gates(text: str) -> dict[str, bool]:
    return parse_feature_gates("" if text == _DECLARED else text)


def _cipher_suites(text: str) -> str:
    try:
        return parse_cipher_suites("" if text == _DEFAULT else text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _tls_version(text: str) -> TLSVersion:
    try:
        return parse_tls_version(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _burst(text: str) -> int | None:
    return _positive(text) if text != _DECLARED else None


def _address(text: str) -> str:
    parse_address(text)
    return text


def _optional_address(text: str) -> str:
    return _address(text) if text else ""


def _folder(text: str) -> Path | None:
    # Deployments pass an empty string if there is no folder.
    return Path(text) if text else None
