"""Topology mutation hooks: patches, validation and variables of ClusterClasses.

Core calls them whenever it reconciles a topology. They must be pure: the same request always gives
the same result, and the hook has no side effects (RX-06).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from capsmith_runtime.api.serialization import decode
from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.model import Object
from capsmith_runtime.extension.patches import encode_patch, json_patch
from capsmith_runtime.extension.responses import Codec, HookError, VariableDefinition
from capsmith_runtime.extension.variables import Variables, read_variables

_SPEC = ("spec", "template", "spec")


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The object that uses a template, and the field that refers to it."""

    api_version: str = field(default="", metadata={"json": "apiVersion"})
    kind: str = ""
    """Kind of the object: ``Cluster``, ``MachineDeployment``, ``MachinePool`` or another.

    The kind of a control plane depends on its provider.
    """
    namespace: str = ""
    name: str = ""
    field_path: str = field(default="", metadata={"json": "fieldPath"})
    """Path of the field that refers to the template, such as ``spec.infrastructureRef``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A template in a topology, together with one of the objects that use it."""

    uid: str
    """Id of the template within the request; empty in ValidateTopologyRequest."""
    holder: Holder
    """The object that uses the template."""
    object: Mapping[str, Any]
    """The whole template, as JSON."""
    variables: Variables
    """The global variables, overridden by the template's own variables."""

    @property
    def kind(self) -> str:
        """Return the template's kind, such as ``AcmeMachineTemplate``."""
        return metadata.text(self.object, "kind")

    @property
    def group(self) -> str:
        """Return the template's API group; do not rely on its version, which may change (TP-11)."""
        return metadata.text(self.object, "apiVersion").partition("/")[0]

    @property
    def is_infrastructure(self) -> bool:
        """Return whether this is an infrastructure template rather than a bootstrap template."""
        # Kinds have no common suffix, while the field that refers to the template is core's.
        return self.holder.field_path.endswith("infrastructureRef")

    @property
    def spec(self) -> Mapping[str, Any]:
        """Return ``spec.template.spec``, the spec of objects that are created from the template."""
        return metadata.mapping(self.object, *_SPEC)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Topology:
    settings: Mapping[str, str]
    """The ExtensionConfig's settings, overridden by those of the ClusterClass's patch."""
    variables: Variables
    """The global variables; templates can have additional ones."""
    templates: Sequence[Template]
    """All templates, in the order of the request."""

    def of(self, kind: str = "", *, group: str = "", holder: str = "") -> Iterator[Template]:
        """Yield templates with this kind, group and holder kind; an empty string matches any."""
        for template in self.templates:
            if (
                kind in ("", template.kind)
                and group in ("", template.group)
                and holder in ("", template.holder.kind)
            ):
                yield template


class GeneratePatchesRequest(_Topology):
    """Request for patches, with all of a topology's templates as they are before this hook."""


class ValidateTopologyRequest(_Topology):
    """Request for validation, with all of a topology's templates after all patches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverVariablesRequest:
    """Request for the variables that a ClusterClass's patch defines."""

    settings: Mapping[str, str]
    """The ExtensionConfig's settings, overridden by the settings of the ClusterClass's patch."""


class Patches:
    """The changes made by a GeneratePatches hook, collected template by template."""

    def __init__(self) -> None:
        self._edited: dict[str, tuple[Template, dict[str, Any]]] = {}

    def edit(self, template: Template) -> dict[str, Any]:
        """Return a copy of ``spec.template.spec`` to modify; the difference becomes the patch.

        Only the spec can be patched: core up to v1.13 ignores patches to other parts, and this
        method does not support the labels and annotations that later releases accept (TP-12).
        """
        if template.uid not in self._edited:
            # A deep copy: the difference is computed against the original, which must not change.
            self._edited[template.uid] = (template, copy.deepcopy(dict(template.spec)))
        return self._edited[template.uid][1]

    def items(self) -> list[dict[str, str]]:
        """Return the response's items: one patch for each template that was changed."""
        patches = []
        for uid, (template, spec) in self._edited.items():
            # A template that was edited without a change needs no item.
            if json_patch(template.spec, spec):
                operations = json_patch(template.object, _with_spec(template.object, spec))
                patches.append({"uid": uid, **encode_patch(operations)})
        return patches


def _read(request: Object) -> dict[str, Any]:
    variables = read_variables(request, "variables")
    templates = [
        Template(
            uid=metadata.text(item, "uid"),
            holder=decode(Holder, metadata.mapping(item, "holderReference"), "holderReference"),
            object=metadata.mapping(item, "object"),
            # Core sends only the differences for each template.
            variables=variables.overridden_by(read_variables(item, "variables")),
        )
        for item in metadata.items(request, "items")
        if isinstance(item, Mapping)
    ]
    return {
        "settings": metadata.mapping(request, "settings"),
        "variables": variables,
        "templates": templates,
    }


def _with_spec(obj: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    outer_spec = metadata.mapping(obj, "spec")
    template = metadata.mapping(outer_spec, "template")
    return {**obj, "spec": {**outer_spec, "template": {**template, "spec": spec}}}


def _read_discovery(request: Object) -> DiscoverVariablesRequest:
    return DiscoverVariablesRequest(settings=metadata.mapping(request, "settings"))


def _write_patches(result: Patches, request: _Topology) -> dict[str, Any]:
    return {"items": result.items()}


def _write_errors(result: Sequence[str], request: _Topology) -> dict[str, Any]:
    if result:
        # ValidateTopology has no field for single errors, only a message.
        raise HookError("; ".join(result))
    return {}


def _write_variables(
    result: Sequence[VariableDefinition], request: DiscoverVariablesRequest
) -> dict[str, Any]:
    return {
        "variables": [
            {
                "name": variable.name,
                "required": variable.required,
                "schema": {"openAPIV3Schema": dict(variable.schema)},
            }
            for variable in result
        ]
    }


GENERATE_PATCHES: Final = Codec(
    lambda request: GeneratePatchesRequest(**_read(request)), (Patches,), _write_patches
)
VALIDATE_TOPOLOGY: Final = Codec(
    lambda request: ValidateTopologyRequest(**_read(request)), (list, tuple), _write_errors
)
DISCOVER_VARIABLES: Final = Codec(_read_discovery, (list, tuple), _write_variables)
