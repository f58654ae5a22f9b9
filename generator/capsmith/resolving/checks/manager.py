"""Check flags and feature gates: names, defaults, limits, and clusterctl variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from capsmith.provider.draft import Draft
from capsmith.provider.manager import (
    default_of,
    has_variable,
    name_flag_constant,
    name_gate_constant,
    parse_duration,
)
from capsmith.yamldoc.document import PathReporter
from capsmith.yamldoc.quote import join_names, quote

if TYPE_CHECKING:
    from capsmith.provider_yaml.manager import FlagSpec

_FLAG_LIST: Final = """
    component concurrency diagnostics-address diagnostics-cert-dir excluded-namespaces feature-gates
    graceful-shutdown-timeout health-addr help hook-burst hook-rate hook-threads hook-timeout
    insecure-diagnostics kube-api-burst kube-api-qps kubeconfig leader-elect
    leader-elect-lease-duration leader-elect-namespace leader-elect-renew-deadline
    leader-elect-retry-period logging-format namespace skip-crd-migration-phases sync-period
    tls-cipher-suites tls-min-version v version watch-filter webhook-cert-dir webhook-cert-name
    webhook-client-ca-name webhook-host webhook-key-name webhook-port webhook-shutdown-delay
    webhook-url
    """
OWN_FLAGS: Final = frozenset(_FLAG_LIST.split())
"""The runtime library's flags, which any manager may have."""
_VARIABLE_LIST: Final = """
    API_SERVERS API_SERVERS_IPV6 LEASE_DURATION LEASE_RENEW_DEADLINE LEASE_RETRY_PERIOD LOG_LEVEL
    NAMESPACES TRACES_ENDPOINT TRACES_EXPORTER
    """
OWN_VARIABLES: Final = frozenset(_VARIABLE_LIST.split())
"""Variables in the manifests that are not named after a flag of the manager, without prefix."""
_FLAGS: Final = "FLAGS"
"""Name in generated code of the collection of all flags."""
_NOUNS: Final = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "duration": "a duration",
}
_NUMBERS: Final = ("integer", "number")
_TEXT: Final = re.compile(r"[A-Za-z0-9._/:@,=+-]*")
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def check_manager(draft: Draft, top: PathReporter) -> None:
    """Report flags and feature gates that the manager or clusterctl does not support.

    Ids: ``flag-taken``, ``flag-default``, ``flag-limits``, ``flag-variable`` and
    ``manager-name-clash``.
    """
    manager = draft.spec.manager
    if manager is None:
        return
    constants = {_FLAGS: "all flags together"}
    for name, flag in (manager.flags or {}).items():
        reporter = top.at("manager", "flags", name)
        if name in OWN_FLAGS or name_flag_constant(name) in OWN_VARIABLES:
            message = f"each manager has the flag or the variable of {quote(name)}"
            reporter.add_error_at_key("flag-taken", message, "Choose another name.")
        _check_constant(name, name_flag_constant(name), constants, reporter)
        _check_limits(flag, reporter)
        _check_default(flag, reporter)
    for name in manager.feature_gates or {}:
        reporter = top.at("manager", "featureGates", name)
        _check_constant(name, name_gate_constant(name), constants, reporter)


def _check_constant(
    name: str, constant: str, constants: dict[str, str], reporter: PathReporter
) -> None:
    if constants.setdefault(constant, quote(name)) != quote(name):
        message = f"the constant {constant} of {quote(name)} is that of {constants[constant]}"
        reporter.add_error_at_key("manager-name-clash", message, "Choose another name.")


def _check_limits(flag: FlagSpec, reporter: PathReporter) -> None:
    for key in ("minimum", "maximum"):
        if getattr(flag, key) is not None and flag.type not in _NUMBERS:
            message = f"{_NOUNS[flag.type]} has no {key}"
            reporter.add_error_at_key("flag-limits", message, "Remove it.", key)
    if flag.choices is not None and flag.type != "string":
        message = f"{_NOUNS[flag.type]} has no choices"
        reporter.add_error_at_key("flag-limits", message, "Remove them.", "choices")
    if flag.type == "integer":
        for key in ("minimum", "maximum"):
            if isinstance(getattr(flag, key), float):
                message = f"the {key} of an integer must be an integer"
                reporter.add_error("flag-limits", message, "Round it.", key)
    if flag.minimum is not None and flag.maximum is not None and flag.minimum > flag.maximum:
        message = "the minimum is greater than the maximum"
        reporter.add_error("flag-limits", message, "Correct one of them.", "minimum")


def _check_default(flag: FlagSpec, reporter: PathReporter) -> None:
    default = default_of(flag)
    if default is None:
        message = f"{_NOUNS[flag.type]} has no default of its own"
        reporter.add_error_at_key("flag-default", message, "Add `default`.")
        return
    where = ("default",) if flag.default is not None else ()
    problem, hint = _find_default_problem(flag, default)
    if problem:
        reporter.add_error("flag-default", problem, hint, *where)
    elif default == "" and has_variable(flag):
        message = "clusterctl does not allow a variable with an empty default"
        reporter.add_error("flag-variable", message, "Add `default`, or remove this.", "variable")


def _find_default_problem(flag: FlagSpec, default: str | int | float | bool) -> tuple[str, str]:
    """Return what is wrong with a default, and a hint; both are empty if nothing is."""
    shown = quote(str(default))
    if flag.type == "duration":
        is_duration = isinstance(default, str) and parse_duration(default) is not None
        hint = "Write a duration such as 30s, 1m30s or 500ms."
        return ("", "") if is_duration else (f"{shown} is not a duration", hint)
    # In Python, a boolean is an integer.
    if not isinstance(default, _TYPES[flag.type]) or (
        isinstance(default, bool) and flag.type != "boolean"
    ):
        return f"the default must be {_NOUNS[flag.type]}", "Correct it, or the type."
    if isinstance(default, str):
        if flag.choices is not None and default not in flag.choices:
            return f"{shown} is not one of the choices", f"Use {join_names(flag.choices)}."
        if not _TEXT.fullmatch(default):
            hint = "Use letters, digits and . _ / : @ , = + - only, or leave the default out."
            return f"the manager's manifest cannot contain {shown}", hint
    elif flag.type not in _NUMBERS:
        return "", ""
    elif flag.minimum is not None and default < flag.minimum:
        return f"{shown} is less than the minimum", "Correct one of them."
    elif flag.maximum is not None and default > flag.maximum:
        return f"{shown} is greater than the maximum", "Correct one of them."
    return "", ""
