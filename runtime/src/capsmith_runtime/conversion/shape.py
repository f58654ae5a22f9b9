"""Converts spec and status between contract formats, leaving out unsupported fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from capsmith_runtime.conversion.values import (
    CONVERSIONS,
    MISSING,
    Data,
    Path,
    ValueContext,
    copy_value,
    find_retained_parents,
    get_value,
    pop_value,
    set_value,
)


@dataclass(frozen=True, slots=True)
class Change:
    """A field that differs between the contract versions v1beta1 and v1beta2 of one kind."""

    old: Path
    """The path in contract v1beta1, or empty if v1beta1 has no such field."""
    new: Path
    """The path in contract v1beta2, or empty if v1beta2 has no such field."""
    conversion: str = "as-is"
    stays: bool = False
    """Whether contract v1beta2 keeps the old field in addition to the new one."""


Versions = Callable[[str, str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionContext:
    """An object's namespace, and a function that returns a kind's API version."""

    namespace: str = ""
    versions: Versions = lambda group, kind: ""


def convert_forward(data: Data, changes: Sequence[Change], context: ConversionContext) -> Data:
    """Return a copy of ``data`` that is converted from contract v1beta1's format to v1beta2's."""
    result = copy_value(data)
    value_context = _value_context(data, context)
    # All values are removed before any is set: the new path of one change may be the old path of
    # another.
    retained = find_retained_parents(change.new for change in changes)
    values = [
        (
            change,
            (
                get_value(result, change.old)
                if change.stays
                else pop_value(result, change.old, retained)
            ),
        )
        for change in changes
        if change.old
    ]
    for change, value in values:
        if change.new and value is not MISSING:
            new_value = CONVERSIONS[change.conversion].forward(value, value_context)
            set_value(result, change.new, new_value)
    return result


def convert_backward(data: Data, changes: Sequence[Change], context: ConversionContext) -> Data:
    """Return a copy of ``data`` that is converted from contract v1beta2's format to v1beta1's."""
    result = copy_value(data)
    value_context = _value_context(data, context)
    retained = find_retained_parents(change.old for change in changes)
    values = [(change, pop_value(result, change.new, retained)) for change in changes if change.new]
    for change, value in values:
        if not change.old or value is MISSING:
            continue
        conversion = CONVERSIONS[change.conversion]
        if not change.stays:
            set_value(result, change.old, conversion.backward(value, value_context))
        elif get_value(result, change.old) is MISSING:
            # The forward conversion leaves out values that the absence of the old field already
            # expresses.
            set_value(result, change.old, conversion.forward(value, value_context))
    return result


def _value_context(data: Data, context: ConversionContext) -> ValueContext:
    status = data.get("status")
    return ValueContext(
        status=status if isinstance(status, dict) else {},
        namespace=context.namespace,
        versions=context.versions,
    )
