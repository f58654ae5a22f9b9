"""The subresource scale in provider.yaml."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, Tag

from capsmith.provider_yaml.forms import (
    FLAG,
    MAPPING,
    Form,
    SpecModel,
    choose_by_tag,
    classify_flag_or_mapping,
)

_NAMES = r"(\.[A-Za-z][A-Za-z0-9_-]*)+"
_LENGTH = 500
_SpecPath = Annotated[
    str,
    Form(
        "scale-spec-path",
        "the path of a field in the spec",
        rf"\.spec{_NAMES}",
        _LENGTH,
        "Write the path with a dot before each name, such as .spec.replicas.",
    ),
]
_StatusPath = Annotated[
    str,
    Form(
        "scale-status-path",
        "the path of a field in the status",
        rf"\.status{_NAMES}",
        _LENGTH,
        "Write the path with a dot before each name, such as .status.replicas.",
    ),
]
_SelectorPath = Annotated[
    str,
    Form(
        "scale-selector-path",
        "the path of a field in the spec or the status",
        rf"\.(spec|status){_NAMES}",
        _LENGTH,
        "Write the path with a dot before each name, such as .status.selector.",
    ),
]


class ScaleSpec(SpecModel):
    """The fields that the subresource scale reads and writes."""

    spec_replicas_path: _SpecPath = Field(
        description="Path of the desired number, such as `.spec.replicas`."
    )
    status_replicas_path: _StatusPath = Field(
        description="Path of the observed number, such as `.status.replicas`."
    )
    label_selector_path: _SelectorPath | None = Field(
        None,
        description="Path of the label selector, a string, such as `.status.selector`.",
    )


ScaleLike = Annotated[
    Annotated[bool, Tag(FLAG)] | Annotated[ScaleSpec, Tag(MAPPING)],
    choose_by_tag(classify_flag_or_mapping, "true, false or a mapping {specReplicasPath: …}"),
]


def list_scale_paths(scale: ScaleLike | None) -> dict[str, str] | None:
    """Return the declared paths by their keys in a CRD; None if there is no subresource scale.

    Empty if the contract decides.
    """
    if isinstance(scale, ScaleSpec):
        return scale.model_dump(by_alias=True, exclude_none=True)
    return None if scale is False else {}
