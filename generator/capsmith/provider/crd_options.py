"""What the CRD of a kind has otherwise than capsmith would generate it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from capsmith.provider_yaml.kind_parts import KubectlSpec, PartLimits, TemplateSpec

_CATEGORY = "cluster-api"


class CrdOptions(NamedTuple):
    """Settings of one version of a CRD; the defaults change nothing."""

    contract_columns: bool = True
    required_parts: frozenset[str] | None = None
    """Such as ``spec``; None: as the contract requires."""
    part_limits: Mapping[str, Mapping[str, Any]] = {}
    """Further keywords by part: ``status``, ``spec.template``."""
    transition_rules: bool = False
    """Whether a template repeats the rules that compare with the old value."""

    def limits(self, part: str) -> dict[str, Any]:
        """Return the further keywords of a part."""
        return dict(self.part_limits.get(part, {}))

    def with_parts(
        self, required: Sequence[str] | None, limits: Mapping[Any, PartLimits] | None
    ) -> CrdOptions:
        """Return the options with the parts of a version that mentions them."""
        found = self
        if required is not None:
            found = found._replace(required_parts=frozenset(required))
        if limits is not None:
            plain = {
                str(part): each.model_dump(mode="json", by_alias=True, exclude_unset=True)
                for part, each in limits.items()
            }
            found = found._replace(part_limits=plain)
        return found


def options_of_template(kind: KubectlSpec, template: TemplateSpec | None) -> CrdOptions:
    """Return the options of a template; it has the contract's columns as its kind does."""
    if template is None:
        return CrdOptions(contract_columns=kind.contract_columns is not False)
    has_columns = _first(template.contract_columns, kind.contract_columns)
    options = CrdOptions(has_columns, transition_rules=bool(template.transition_rules))
    return options.with_parts(template.required_parts, template.part_limits)


def categories_of(kind: KubectlSpec | None, template: KubectlSpec | None = None) -> list[str]:
    """Return the categories of a kind, or of its template, which has those of its kind."""
    sources = [each for each in (template, kind) if each is not None]
    own = next((each.categories for each in sources if each.categories is not None), ())
    is_in = _first(*(each.contract_category for each in sources))
    return list(dict.fromkeys((*((_CATEGORY,) if is_in else ()), *own)))


def _first(*switches: bool | None) -> bool:
    """Return the first switch that is set; all are on by default."""
    return next((each for each in switches if each is not None), True)
