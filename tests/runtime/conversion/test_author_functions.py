"""Whatever an author's functions return, and for whatever they fail, nothing is lost."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capsmith_runtime.conversion.fields import SPEC, PartFields, VersionFields
from capsmith_runtime.conversion.objects import ConvertedKind, Converter
from tests.runtime.conversion.test_fields import GROUP, HUB, OLD, named

Value = int | None
Pair = tuple[Value, Value]
VALUES: tuple[Value, ...] = (None, 0, 1)
PAIRS = [(one, other) for one in VALUES for other in VALUES]


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSpec:
    cores: int | None = None
    memory: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OldSpec:
    size: int | None = None
    tier: int | None = None


def tables(*results: Any) -> st.SearchStrategy[dict[Pair, Any]]:
    return st.fixed_dictionaries({pair: st.sampled_from(results) for pair in PAIRS})


def converter(to_hub: Mapping[Pair, Pair], from_hub: Mapping[Pair, Pair | None]) -> Converter:
    """Return a converter with functions that are tables; the second one fails where it has None."""

    def convert_to_hub(spec: OldSpec) -> HubSpec:
        cores, memory = to_hub[spec.size, spec.tier]
        return HubSpec(cores=cores, memory=memory)

    def convert_from_hub(spec: HubSpec) -> OldSpec:
        found = from_hub[spec.cores, spec.memory]
        if found is None:
            raise ValueError("refused")
        return OldSpec(size=found[0], tier=found[1])

    part = PartFields(
        path=SPEC,
        spoke=OldSpec,
        hub=HubSpec,
        spoke_keys=frozenset({"size", "tier"}),
        hub_keys=frozenset({"cores", "memory"}),
        to_hub=convert_to_hub,
        from_hub=convert_from_hub,
    )
    kind = ConvertedKind(
        group=GROUP,
        kind="AcmeMachine",
        contracts={HUB: "v1beta2", OLD: "v1beta2"},
        changes=(),
        hub=HUB,
        fields={OLD: VersionFields((part,))},
    )
    return Converter((kind,), lambda group, kind: "", lambda error: None)


def check_return(used: Converter, version: str, spec: dict[str, Any]) -> None:
    """Assert that an object comes back, also if another field is changed meanwhile."""
    other = HUB if version == OLD else OLD
    obj = named(version, spec=spec)

    there = used.convert(obj, f"{GROUP}/{other}")

    assert used.convert(there, f"{GROUP}/{version}") == obj
    changed = copy.deepcopy(there)
    changed["spec"]["image"] = "changed"
    back = used.convert(changed, f"{GROUP}/{version}")
    assert back["spec"] == {**spec, "image": "changed"}


@given(
    to_hub=tables(*PAIRS),
    from_hub=tables(*PAIRS, None),
    values=st.sampled_from(PAIRS),
    version=st.sampled_from([HUB, OLD]),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_nothing_is_lost(to_hub: Any, from_hub: Any, values: Pair, version: str) -> None:
    """Proves: CRD-15."""
    names = ("cores", "memory") if version == HUB else ("size", "tier")
    spec = {name: each for name, each in zip(names, values, strict=True) if each is not None}
    check_return(converter(to_hub, from_hub), version, spec)


@pytest.mark.parametrize("version", [HUB, OLD])
def test_functions_that_change_what_they_have_returned(version: str) -> None:
    """No value is the same after two conversions, nor after four."""
    steps = dict(zip(PAIRS, [*PAIRS[1:], PAIRS[0]], strict=True))
    names = ("cores", "memory") if version == HUB else ("size", "tier")

    check_return(converter(steps, steps), version, dict.fromkeys(names, 0))


def test_a_function_that_fails_for_a_stored_object_keeps_its_fields() -> None:
    """Without the fields of the version, the other function returns defaults."""
    to_hub = dict.fromkeys(PAIRS, (0, 0))
    from_hub = {**dict.fromkeys(PAIRS, (1, 1)), (1, 1): None}

    check_return(converter(to_hub, from_hub), HUB, {"cores": 1, "memory": 1})
