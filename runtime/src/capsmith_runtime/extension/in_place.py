"""Hooks for in-place updates, which decide what can be changed on a running machine."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.model import Object
from capsmith_runtime.extension.patches import copy_value, encode_patch, json_patch
from capsmith_runtime.extension.responses import (
    Codec,
    InPlace,
    Proceed,
    RetryAfter,
    encode_decision,
)

_MACHINE: Final = ("machine", "infrastructureMachine", "bootstrapConfig")
_MACHINE_SET: Final = (
    "machineSet",
    "infrastructureMachineTemplate",
    "bootstrapConfigTemplate",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineObjects:
    """A Machine and the objects that it refers to, or a MachineSet with templates.

    None of the objects contains its status.
    """

    machine: Mapping[str, Any]
    """The Machine or MachineSet, as JSON."""
    infrastructure: Mapping[str, Any]
    """The infrastructure machine or its template, as JSON."""
    bootstrap: Mapping[str, Any]
    """The bootstrap configuration or its template.

    It is empty if the Machine has only a ``dataSecretName``.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class CanUpdateRequest:
    """Request to decide which differences can be updated in place.

    The hook must not change anything yet.
    """

    settings: Mapping[str, str]
    """The ExtensionConfig's settings, as strings keyed by name."""
    current: MachineObjects
    """The objects in the state in which the machine was created or last updated."""
    desired: MachineObjects
    """The desired objects."""


class CanUpdateMachineRequest(CanUpdateRequest):
    """Request to decide whether a control plane's Machine can be updated in place."""


class CanUpdateMachineSetRequest(CanUpdateRequest):
    """Request to decide whether a MachineSet's Machines can be updated in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateMachineRequest:
    """Request to update a running machine; core calls again until the update is complete."""

    settings: Mapping[str, str]
    """The ExtensionConfig's settings."""
    desired: MachineObjects
    """The desired objects."""


def _read_can_update_machine(request: Object) -> CanUpdateMachineRequest:
    return CanUpdateMachineRequest(**_read_both(request, _MACHINE))


def _read_can_update_machine_set(request: Object) -> CanUpdateMachineSetRequest:
    return CanUpdateMachineSetRequest(**_read_both(request, _MACHINE_SET))


def _read_update_machine(request: Object) -> UpdateMachineRequest:
    desired = _read_objects(metadata.mapping(request, "desired"), _MACHINE)
    return UpdateMachineRequest(settings=metadata.mapping(request, "settings"), desired=desired)


def _read_both(request: Object, names: tuple[str, str, str]) -> dict[str, Any]:
    return {
        "settings": metadata.mapping(request, "settings"),
        "current": _read_objects(metadata.mapping(request, "current"), names),
        "desired": _read_objects(metadata.mapping(request, "desired"), names),
    }


def _read_objects(fields: Object, names: tuple[str, str, str]) -> MachineObjects:
    machine, infrastructure, bootstrap = (metadata.mapping(fields, name) for name in names)
    return MachineObjects(machine=machine, infrastructure=infrastructure, bootstrap=bootstrap)


def _write_machine(result: InPlace, request: CanUpdateRequest) -> dict[str, Any]:
    return _patches(result, request, _MACHINE)


def _write_machine_set(result: InPlace, request: CanUpdateRequest) -> dict[str, Any]:
    return _patches(result, request, _MACHINE_SET)


def _patches(
    result: InPlace, request: CanUpdateRequest, names: tuple[str, str, str]
) -> dict[str, Any]:
    pointers = (result.machine, result.infrastructure, result.bootstrap)
    current = (request.current.machine, request.current.infrastructure, request.current.bootstrap)
    desired = (request.desired.machine, request.desired.infrastructure, request.desired.bootstrap)
    fields = {}
    for name, paths, old, new in zip(names, pointers, current, desired, strict=True):
        operations = json_patch(old, _updated(paths, old, new))
        if operations:
            fields[f"{name}Patch"] = encode_patch(operations)
    return fields


def _updated(
    pointers: Sequence[str], current: Mapping[str, Any], desired: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the current object with the desired values at ``pointers``."""
    updated = copy.deepcopy(dict(current))
    for pointer in pointers:
        copy_value(pointer, desired, updated)
    return updated


def _write_progress(result: Proceed | RetryAfter, request: UpdateMachineRequest) -> dict[str, Any]:
    return encode_decision(result)


CAN_UPDATE_MACHINE: Final = Codec(_read_can_update_machine, (InPlace,), _write_machine)
CAN_UPDATE_MACHINE_SET: Final = Codec(_read_can_update_machine_set, (InPlace,), _write_machine_set)
UPDATE_MACHINE: Final = Codec(_read_update_machine, (Proceed, RetryAfter), _write_progress)
