"""The key ``manager`` of provider.yaml: flags, feature gates and health checks."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from capsmith import safetext
from capsmith.provider_yaml.forms import Form, Line, Many, SpecModel

FlagName = Annotated[
    str,
    Form(
        "flag-name",
        "the name of a flag",
        "[a-z][a-z0-9]*(-[a-z0-9]+)*",
        40,
        "Write words in lower case with hyphens, such as page-size, without leading hyphens.",
    ),
]
FlagText = Annotated[
    str,
    Form(
        "flag-text",
        "a value that the manager's manifest can contain",
        r"[A-Za-z0-9._/:@,=+-]+",
        200,
        "Use letters, digits and . _ / : @ , = + - only.",
    ),
]
GateName = Annotated[
    str,
    Form(
        "gate-name",
        "the name of a feature gate",
        safetext.KindName.form.pattern,
        safetext.KindName.limit,
        "Write letters and digits in CamelCase, such as FastBoot.",
    ),
]


class FlagSpec(SpecModel):
    """A command line flag of the manager, which your code reads."""

    type: Literal["string", "integer", "number", "boolean", "duration"] = Field(
        description="Type of the value; a duration such as 1m30s is a number of seconds in code."
    )
    description: Line = Field(description="What `--help` says about the flag.")
    default: str | int | float | bool | None = Field(
        None,
        description=(
            "Value if the command line does not name the flag; required, except that a "
            "string is empty and a boolean is false by default."
        ),
    )
    choices: Annotated[Many[FlagText], Field(min_length=1)] | None = Field(
        None, description="All values that a string may have."
    )
    minimum: int | float | None = Field(None, description="Least value of a number.")
    maximum: int | float | None = Field(None, description="Greatest value of a number.")
    variable: bool | None = Field(
        None,
        description=(
            "Whether a variable of clusterctl sets the flag; true by default, unless the "
            "default is empty, which clusterctl does not allow for a variable."
        ),
    )


class FeatureGateSpec(SpecModel):
    """A part of your code that operators turn on or off with `--feature-gates`."""

    description: Line = Field(description="What `--help` says about the gate.")
    default: bool = Field(False, description="Whether the gate is on; false by default.")


class ManagerSpec(SpecModel):
    """What your code adds to the command line and the probes of the manager."""

    flags: dict[FlagName, FlagSpec] | None = Field(
        None, description="Command line flags by name, such as page-size."
    )
    feature_gates: dict[GateName, FeatureGateSpec] | None = Field(
        None, description="Feature gates by name, such as FastBoot."
    )
    health_checks: bool | None = Field(
        None,
        description="Whether your code checks liveness and readiness too; false by default.",
    )
