"""Check ``contractFields.paths``: contract fields that a CRD has elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from capsmith.contract.model import Contract, ContractField
from capsmith.provider.draft import DraftKind, DraftVersion
from capsmith.provider.field_paths import has_field, list_movable_paths, select_paths, split_path
from capsmith.provider_yaml.field_schemas import convert_field
from capsmith.yamldoc.document import PathReporter
from capsmith.yamldoc.quote import join_names, quote, suggest

if TYPE_CHECKING:
    from capsmith.provider_yaml.forms import FieldLike
    from capsmith.provider_yaml.model import ContractFieldsSpec

_UNKNOWN = "contract-path-unknown"
_TAKEN = "contract-path-taken"
_TEMPLATE = "contract-path-template"


def check_contract_paths(
    kind: DraftKind, contracts: Mapping[str, Contract], reporter: PathReporter
) -> None:
    """Report paths that the manager could not read, or that core reads, too.

    Ids: ``contract-path-unknown`` if no CRD may have the contract's field elsewhere,
    ``contract-path-taken`` if the new place or the old one has another field, and
    ``contract-path-template``, a warning if the kind has a template, which core cannot complete.
    """
    written = kind.spec.versions or {}
    own = {name: each for name, each in written.items() if each.contract_fields is not None}
    scopes = [("", kind.spec.contract_fields)]
    scopes += [(name, each.contract_fields) for name, each in own.items()]
    for name, fields in scopes:
        if fields is None or not fields.paths:
            continue
        versions = [
            each for each in kind.versions if (each.name if each.name in own else "") == name
        ]
        here = reporter.at("versions", name) if name else reporter
        spec = own[name].spec if name and own[name].spec is not None else kind.spec.spec
        _Check(kind, fields, fields.paths, versions, spec or {}, contracts).report(
            here.at("contractFields")
        )
    _check_templates(kind, reporter.at("template"))


def _check_templates(kind: DraftKind, reporter: PathReporter) -> None:
    template = kind.spec.template
    if template is None or isinstance(template, bool):
        return
    described = [(reporter, template.contract_fields)]
    for version, own in (template.versions or {}).items():
        described.append((reporter.at("versions", version), own.contract_fields))
    for here, fields in described:
        if fields is not None and fields.paths is not None:
            message = "the manager reads no machines from a template"
            hint = "Remove it; it belongs to the kind itself."
            here.add_error_at_key(_TEMPLATE, message, hint, "contractFields", "paths")


class _Check(NamedTuple):
    """Checks the paths of a kind in the API versions that share them."""

    kind: DraftKind
    written: ContractFieldsSpec
    paths: Mapping[str, str]
    versions: list[DraftVersion]
    spec: Mapping[str, FieldLike]
    """The author's fields in spec."""
    contracts: Mapping[str, Contract]

    def report(self, reporter: PathReporter) -> None:
        """Report all problems; ``reporter`` has the path to ``contractFields``."""
        fields = [each for name in self._followed() for each in self._enabled_fields(name)]
        movable = dict.fromkeys(list_movable_paths(fields))
        there = reporter.at("paths")
        for old, new in self.paths.items():
            if old not in movable:
                message, hint = self._explain_unknown(old, new, movable)
                there.add_error_at_key(_UNKNOWN, message, hint, old)
                continue
            problem = self._find_problem(old, new)
            if problem:
                hint = "Write the path of a field that only `paths` declares."
                there.add_error(_TAKEN, problem, hint, old)
        if movable.keys() & self.paths.keys():
            self._check_template(reporter)

    def _explain_unknown(self, old: str, new: str, movable: Collection[str]) -> tuple[str, str]:
        """Return the message and the hint for a path of no field that can be elsewhere."""
        others = [
            name for name in self.contracts if old in list_movable_paths(self._enabled_fields(name))
        ]
        if others:
            followed = join_names(dict.fromkeys(self._followed()))
            return (
                f"no API version with these paths follows {join_names(others)}, the contract with "
                f"{quote(old)}",
                f"Remove it, or write its path in {followed} if the CRD still has it at "
                f"{quote(new)}.",
            )
        hint = "Remove it; only control planes with the feature machines have such fields."
        return (
            f"capsmith cannot read {quote(old)} of this kind from another path",
            suggest(old, movable) if movable else hint,
        )

    def _check_template(self, reporter: PathReporter) -> None:
        names = {each.name for each in self.versions}
        if self.kind.has_template and names & {each.name for each in self.kind.template_versions}:
            message = "a ClusterClass with machineInfrastructure cannot use the template: core sets"
            message += " the reference at the contract's path"
            hint = "Keep the template if it has the reference, or write `template: false`."
            reporter.add_warning_at_key(_TEMPLATE, message, hint, "paths")

    def _followed(self) -> list[str]:
        return [each.contract for each in self.versions if each.contract in self.contracts]

    def _enabled_fields(self, contract: str) -> list[ContractField]:
        """Return the fields of spec that a contract version and the kind's features give it."""
        shape = self.contracts[contract].types[self.kind.spec.implements]
        features = self.kind.features
        return [f for f in shape.spec.values() if not f.feature or f.feature in features]

    def _find_problem(self, old: str, new: str) -> str:
        """Return what else is at a path or inside it; empty if there is nothing."""
        name, *below = split_path(new)
        if name in self.spec:
            return f"`spec` declares {quote(name)}, so that it is not a field of the contract"
        for contract in self._followed():
            fields = {field.name: field for field in self._enabled_fields(contract)}
            is_here = old in list_movable_paths(fields.values())
            if is_here and name in fields and not _is_free(fields[name].schema, below):
                return f"{quote(new)} clashes with a field of the contract {contract}"
        for other in self._list_others(old):
            if f"{other}.".startswith(f"{new}.") or f"{new}.".startswith(f"{other}."):
                return f"{quote(other)} is the path of another field"
        first, *rest = split_path(old)
        declared = (self.written.spec or {}).get(first)
        if declared is not None and has_field(convert_field(declared), rest):
            return f"`contractFields.spec` also declares {quote(old)}, at the contract's path"
        return ""

    def _list_others(self, old: str) -> Iterator[str]:
        """Yield the new paths of the fields before ``old`` that a contract has together with it."""
        for contract in self._followed():
            paths = select_paths(self._enabled_fields(contract), self.paths)
            if old in paths:
                yield from list(paths.values())[: list(paths).index(old)]


def _is_free(schema: Mapping[str, Any], steps: list[str]) -> bool:
    """Return whether a field can be added to a schema at the end of ``steps``."""
    for step in steps:
        if schema.get("type") != "object" or "properties" not in schema:
            return False
        if step not in schema["properties"]:
            return True
        schema = schema["properties"][step]
    return False
