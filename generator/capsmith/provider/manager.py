"""The author's additions to a manager: flags, feature gates and health checks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from capsmith.provider.naming import kebab
from capsmith.safetext import Identifier, KindName, Rfc1035Label, SafeText

if TYPE_CHECKING:
    from capsmith.provider_yaml.manager import FlagSpec, ManagerSpec

_SECONDS: Final[Mapping[str, float]] = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")


class ManagerFlag(NamedTuple):
    """A command-line flag that the author adds to the provider's manager."""

    name: Rfc1035Label
    constant: Identifier
    """Name of the constant in generated code, such as ``PAGE_SIZE``."""
    class_name: Identifier
    """Name of the flag's class in the runtime library, such as ``IntegerFlag``."""
    default: str | int | float | bool
    """Value in generated code. Durations are in seconds."""
    text: str
    """Default as a command-line argument."""
    description: str
    choices: tuple[str, ...]
    minimum: int | float | None
    maximum: int | float | None
    variable: Identifier | None
    """clusterctl variable that sets the flag; None if there is none."""

    @property
    def argument(self) -> SafeText:
        """Return the argument for the manager's manifest. The flag must have a variable."""
        return SafeText(f"--{self.name}=${{{self.variable}:={self.text}}}")


class FeatureGate(NamedTuple):
    """A feature gate that the author declares for the provider's manager."""

    name: KindName
    constant: Identifier
    """Name of the constant in generated code, such as ``FAST_BOOT``."""
    default: bool
    description: str


class Manager(NamedTuple):
    """Flags, feature gates and health checks for all of a provider's managers."""

    flags: tuple[ManagerFlag, ...] = ()
    feature_gates: tuple[FeatureGate, ...] = ()
    health_checks: bool = False

    @property
    def has_settings(self) -> bool:
        """Return whether there are flags or feature gates."""
        return bool(self.flags or self.feature_gates)

    @property
    def flag_classes(self) -> tuple[Identifier, ...]:
        """Return the flags' class names, sorted and without duplicates."""
        return tuple(sorted({flag.class_name for flag in self.flags}))

    @property
    def variables(self) -> tuple[ManagerFlag, ...]:
        """Return the flags that are set by clusterctl variables."""
        return tuple(flag for flag in self.flags if flag.variable is not None)


def name_flag_constant(flag: str) -> str:
    """Return the name of a flag's constant: ``page-size`` -> ``PAGE_SIZE``."""
    return flag.upper().replace("-", "_")


def name_gate_constant(gate: str) -> str:
    """Return the name of a gate's constant: ``FastBoot`` -> ``FAST_BOOT``."""
    return name_flag_constant(kebab(gate))


def default_of(flag: FlagSpec) -> str | int | float | bool | None:
    """Return a flag's default as written; None if the author must specify one."""
    if flag.default is None and flag.type == "string":
        return ""
    return False if flag.default is None and flag.type == "boolean" else flag.default


def has_variable(flag: FlagSpec) -> bool:
    """Return whether a flag is set by a clusterctl variable."""
    # clusterctl requires a value for a variable with an empty default.
    return flag.variable if flag.variable is not None else default_of(flag) != ""


def parse_duration(text: str) -> float | None:
    """Return a duration such as ``1m30s`` in seconds, or None if it is invalid."""
    if not text or _PART.sub("", text):
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))


def build_manager(spec: ManagerSpec | None, environment_prefix: str) -> Manager:
    """Build the managers' settings from a checked description."""
    if spec is None:
        return Manager()
    return Manager(
        flags=tuple(
            _build_flag(name, flag, environment_prefix) for name, flag in (spec.flags or {}).items()
        ),
        feature_gates=tuple(
            FeatureGate(
                KindName(name), Identifier(name_gate_constant(name)), gate.default, gate.description
            )
            for name, gate in (spec.feature_gates or {}).items()
        ),
        health_checks=bool(spec.health_checks),
    )


def _build_flag(name: str, spec: FlagSpec, environment_prefix: str) -> ManagerFlag:
    written = default_of(spec)
    # A check reports missing values and invalid durations.
    default = parse_duration(str(written)) if spec.type == "duration" else written
    assert default is not None, name
    is_number = spec.type == "number" and not isinstance(default, str | bool)
    constant = name_flag_constant(name)
    return ManagerFlag(
        name=Rfc1035Label(name),
        constant=Identifier(constant),
        class_name=Identifier(f"{spec.type.capitalize()}Flag"),
        default=float(default) if is_number else default,
        text=str(written).lower() if isinstance(written, bool) else str(written),
        description=spec.description,
        choices=spec.choices or (),
        minimum=spec.minimum,
        maximum=spec.maximum,
        variable=Identifier(f"{environment_prefix}_{constant}") if has_variable(spec) else None,
    )
