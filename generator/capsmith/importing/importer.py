"""Convert CRDs to a provider.yaml, and report what provider.yaml cannot express.

A first provider.yaml, the skeleton, contains only the roles of kinds, so the CRDs generated from it
contain only the contract's fields.  Everything else in the original CRDs becomes the author's
fields.  The final provider.yaml is then used to generate CRDs in memory, which are compared with
the originals, so that every difference is reported.  The comparison is independent of the
conversion, so it also finds errors in the conversion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from capsmith.contract.model import Contract
from capsmith.findings import Finding
from capsmith.importing import kinds, templates
from capsmith.importing.compare import Difference, DifferenceKind, compare_crds, normalize
from capsmith.importing.field_paths import describe_field_paths, read_field_paths
from capsmith.importing.fields import convert_field
from capsmith.importing.kinds import Reserved, drop_columns, list_reserved_fields
from capsmith.importing.layout import convert_to_plain_data, dump_provider_yaml
from capsmith.importing.outline import Outline, decide_outline
from capsmith.importing.refusals import CheckedData, Refusal, check_data, remove_refused
from capsmith.importing.source import IDENTITY, SourceCrd, describe_credentials, select_by_name
from capsmith.manifests.crds import Crd, CrdVersion
from capsmith.manifests.parse import Manifest, list_of, mapping_of, text_of
from capsmith.output.crd import build_crd
from capsmith.progress import track
from capsmith.provider.build import build_provider
from capsmith.provider.described_kinds import MACHINES, MANAGED
from capsmith.provider.model import Component, Provider
from capsmith.provider.sections import SECTION_TYPES

Crds = Mapping[tuple[str, str], Mapping[str, Any]]
"""Generated CRDs by group and kind."""
_OF_VERSIONS = ("contractFields", "versions")
"""Keys of a first entry that each version's entry replaces."""
_MACHINE_KIND = "infrastructureMachineKind"


class ImportedCrd(NamedTuple):
    """An original CRD, and the differences between it and the generated CRD."""

    crd: Crd
    role: str
    """Role in provider.yaml. A template's role ends in ``Template``."""
    path: tuple[str, str]
    """Section and kind of the CRD's entry in provider.yaml."""
    differences: tuple[Difference, ...]
    contract_fields: frozenset[str]
    """Paths of the fields that the contract adds, such as ``.spec.providerID``."""


class Imported(NamedTuple):
    """The provider.yaml created from CRDs, and the differences that it cannot express."""

    text: str
    crds: tuple[ImportedCrd, ...]
    refusals: tuple[Refusal, ...]
    corrected: Mapping[str, tuple[str, str]] = {}
    """Contract versions in metadata.yaml and in the file, by release series, where they differ."""
    has_machines: bool = True
    """Whether the file describes infrastructure on which Machines run, or no infrastructure."""


def import_crds(
    sources: Sequence[SourceCrd],
    metadata: Sequence[Manifest],
    names: tuple[str, str],
    contracts: Mapping[str, Contract],
) -> Imported:
    """Convert CRDs to a provider.yaml, and compare them with the CRDs generated from it.

    ``names`` is a tuple of the provider's name and repository.  ``metadata`` holds its clusterctl
    Metadata objects.
    """
    name, repository = names
    everything = sources
    sources, repeated = select_by_name(everything)
    head = decide_outline(name, sources, metadata, contracts)
    followed = {each.name: contracts[each.contract] for each in head.versions}
    base, skeleton = _skeleton(sources, head, repository, followed, contracts)
    data: dict[str, Any] = dict(head.head(repository))
    roles = {each.role for each in sources}
    reserved = {role: list_reserved_fields(role, head.contracts, contracts) for role in roles}
    for each in sources:
        if each.role != IDENTITY:
            entry = _entry(base[each.crd.kind], each, skeleton, reserved[each.role], head)
            data.setdefault(each.section, {})[each.crd.kind] = entry
    _add_credentials(data, sources, contracts, with_fields=True)
    data = convert_to_plain_data(data)
    checked, refusals = remove_refused(data, contracts)
    generated = _generated(checked, contracts)
    # Two repairs need the first result: they depend on what was refused, and on how templates
    # differ.
    is_other = add_machine_kinds(data, sources, refusals)
    is_other |= _add_own_specs(data, sources, generated, skeleton, reserved)
    if is_other:
        data = convert_to_plain_data(data)
        checked, further = remove_refused(data, contracts)
        refusals, generated = (*refusals, *further), _generated(checked, contracts)
    crds = [
        _compared(crd, source, generated, skeleton)
        for source in track("comparing kind", everything)
        for crd in source.all
    ]
    refusals = (*refusals, *(_refuse_name(each, first) for each, first in repeated))
    text = dump_provider_yaml(data)
    return Imported(text, tuple(crds), refusals, head.corrected, head.has_machines)


def _refuse_name(source: SourceCrd, first: SourceCrd) -> Refusal:
    name = first.crd.manifest.name
    message = f"{name} has the same kind, and provider.yaml has each kind once"
    finding = Finding("kind-repeated", message, source.crd.manifest.location)
    return Refusal((source.section, source.crd.kind), finding)


def _skeleton(
    sources: Sequence[SourceCrd],
    head: Outline,
    repository: str,
    followed: Mapping[str, Contract],
    contracts: Mapping[str, Contract],
) -> tuple[dict[str, kinds.Entry], Crds]:
    """Return the kinds' entries without the author's fields, and the CRDs generated from them."""
    shapes = {each.crd.kind: kinds.list_shapes(each.role, followed) for each in sources}
    moved = {each.crd.kind: describe_field_paths(each, shapes[each.crd.kind]) for each in sources}
    base = {
        each.crd.kind: kinds.make_first_entry(each, shapes[each.crd.kind], moved[each.crd.kind])
        | kinds.describe_versions(each.crd, head.versions)
        | kinds.describe_place(each, head, SECTION_TYPES[each.section].group)
        for each in sources
    }
    # Start with default features only, because differences from these must be written.
    usual = _usual_features(_checked(base, sources, head, repository, contracts))
    configs = [source.crd.kind for source in sources if source.role == "BootstrapConfig"]
    machines = [source.crd.kind for source in sources if source.role == "InfraMachine"]
    has_identities = any(source.role == IDENTITY for source in sources)
    for source in sources:
        entry, kind = base[source.crd.kind], source.crd.kind
        there = kinds.detect_features(source, shapes[kind], moved[kind])
        on = usual.get(kind, ())
        switched = {name: is_on for name, is_on in sorted(there.items()) if is_on != (name in on)}
        if has_identities and source.refers_to_identity:
            switched["credentials"] = True
        if switched:
            entry["features"] = {**entry.get("features", {}), **switched}
        if source.role == "ControlPlane" and not there.get(MANAGED):
            bootstrap = kinds.find_bootstrap_kind(source.crd, configs)
            if bootstrap is not None:
                entry["bootstrap"] = bootstrap
        machine = source.crd.kind.removesuffix("Pool")
        if there.get(MACHINES) and len(machines) > 1 and machine in machines:
            entry["machineKind"] = machine
    checked = _checked(base, sources, head, repository, contracts)
    return base, _generated(checked, contracts)


def _checked(
    base: Mapping[str, kinds.Entry],
    sources: Sequence[SourceCrd],
    head: Outline,
    repository: str,
    contracts: Mapping[str, Contract],
) -> CheckedData:
    data: dict[str, Any] = dict(head.head(repository))
    for source in sources:
        if source.role != IDENTITY:
            data.setdefault(source.section, {})[source.crd.kind] = base[source.crd.kind]
    _add_credentials(data, sources, contracts, with_fields=False)
    return check_data(data, contracts)


def _add_credentials(
    data: dict[str, Any],
    sources: Sequence[SourceCrd],
    contracts: Mapping[str, Contract],
    *,
    with_fields: bool,
) -> None:
    crds = [source.crd for source in sources if source.role == IDENTITY]
    # Identities have the same shape in all contracts.
    value = describe_credentials(crds, next(iter(contracts.values())), with_fields)
    if value is not None:
        data["credentials"] = value


def _usual_features(checked: CheckedData) -> dict[str, frozenset[str]]:
    if checked.draft is None:
        return {}
    return {each.name: each.features for each in checked.draft.kinds}


def _entry(
    base: kinds.Entry, source: SourceCrd, skeleton: Crds, reserved: Reserved, head: Outline
) -> kinds.Entry:
    made = skeleton.get((source.crd.group, source.crd.kind), {})
    hub = kinds.find_storage_version(source.crd)
    names = kinds.describe_names(source.crd, made)
    # Without the contract's columns, every column of the CRD belongs to the author.
    if names.get("contractColumns") is False:
        made = drop_columns(made)
    parts = {
        each.name: _parts(source.crd, each, made, reserved)
        for each in source.crd.versions
        # A version that is neither served nor stored holds no objects, so its fields do not matter.
        if each.served or each is hub
    }
    for version, part in parts.items():
        paths = read_field_paths(base, version)
        if paths:
            part["contractFields"] = {"paths": paths, **part.get("contractFields", {})}
    settings = {key: value for key, value in base.items() if key not in _OF_VERSIONS}
    entry = {"implements": base["implements"], **names, **settings, **parts[hub.name]}
    if source.template is not None:
        generated = skeleton.get((source.crd.group, source.template.kind), {})
        template = templates.describe_template(source.template, generated, entry, head.versions)
        if template:
            entry["template"] = template
    others = {
        each.name: kinds.find_version_differences(parts[each.name], parts[hub.name], each.schema)
        for each in source.crd.versions
        if each.name in parts and each is not hub
    }
    versions = {version: found for version, found in others.items() if found}
    return {**entry, "versions": versions} if versions else entry


def _add_own_specs(
    data: dict[str, Any],
    sources: Sequence[SourceCrd],
    generated: Crds,
    skeleton: Crds,
    reserved: Mapping[str, Reserved],
) -> bool:
    """Add the fields of templates that differ from their kinds' fields.

    Returns whether any fields were added.
    """
    found = False
    for source in sources:
        entry = mapping_of(data, source.section, source.crd.kind)
        key = (source.crd.group, f"{source.crd.kind}Template")
        if source.template is None or not entry or key not in generated:
            continue
        differences = compare_crds(source.template.manifest.document, generated[key])
        if any(each.field.startswith(".spec.template.spec") for each in differences):
            found, written = True, mapping_of(entry, "template")
            data[source.section][source.crd.kind]["template"] = templates.describe_own_spec(
                source.template, skeleton.get(key, {}), reserved[source.role], dict(written)
            )
    return found


def _parts(
    crd: Crd, version: CrdVersion, made: Mapping[str, Any], reserved: Reserved
) -> kinds.Entry:
    originals = list_of(crd.manifest.document, "spec", "versions")
    original = _named(originals, version.name)
    return kinds.extract_author_parts(version, original, _version(made, version.name), reserved)


def _version(crd: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the named version of a generated CRD, or another version if there is none."""
    versions = list_of(crd, "spec", "versions")
    return _named(versions, name) or (mapping_of(versions[-1]) if versions else {})


def _named(versions: Sequence[Any], name: str) -> Mapping[str, Any]:
    return next((mapping_of(each) for each in versions if text_of(each, "name") == name), {})


def _generated(checked: CheckedData, contracts: Mapping[str, Contract]) -> Crds:
    """Return the provider's generated CRDs, even if errors remain that do not affect its kinds."""
    provider: Provider | None = checked.provider
    if provider is None and checked.draft is not None:
        # Other findings, such as findings on the name, must not hide differences between the CRDs.
        try:
            provider = build_provider(checked.draft, contracts)
        except (ValueError, KeyError):
            return {}
    return {} if provider is None else _crds(provider)


def _crds(provider: Provider) -> Crds:
    return {
        (str(resource.group), str(resource.kind)): build_crd(
            resource, component, provider.former_contracts
        )
        for component in provider.components
        for resource in component.resources
    }


def _contract_only(provider: Provider) -> Crds:
    """Return the generated CRDs without the author's fields."""
    return _crds(provider._replace(components=tuple(map(_without_fields, provider.components))))


def _without_fields(component: Component) -> Component:
    kinds = (each._replace(spec_fields=(), status_fields=()) for each in component.resources)
    return component._replace(resources=tuple(kinds))


def _compared(crd: Crd, source: SourceCrd, generated: Crds, skeleton: Crds) -> ImportedCrd:
    is_template = crd is not source.crd
    role = source.role + ("Template" if is_template else "")
    path = (source.section, source.crd.kind)
    made = generated.get((crd.group, crd.kind))
    differences: Sequence[Difference]
    if made is None:
        differences = [Difference(DifferenceKind.MISSING, "", (), "", "kind", crd.kind)]
    else:
        differences = compare_crds(crd.manifest.document, made)
    reserved = _contract_fields(skeleton.get((crd.group, crd.kind), {}), is_template)
    return ImportedCrd(crd, role, path, tuple(differences), reserved)


def _contract_fields(made: Mapping[str, Any], is_template: bool) -> frozenset[str]:
    found = set()
    for version in list_of(made, "spec", "versions"):
        top = mapping_of(version, "schema", "openAPIV3Schema", "properties")
        prefix = ".spec.template.spec" if is_template else ".spec"
        keys = ("properties", "template", "properties", "spec") if is_template else ()
        spec = mapping_of(top, "spec", *keys, "properties")
        found |= {f"{prefix}.{name}" for name in spec}
        found |= {f".status.{name}" for name in mapping_of(top, "status", "properties")}
    return frozenset(found)


def compare_provider(sources: Sequence[SourceCrd], provider: Provider) -> tuple[ImportedCrd, ...]:
    """Compare CRDs with those that a provider generates, in the order of ``sources``."""
    generated = _crds(provider)
    shapes = _contract_only(provider)
    return tuple(
        _compared(crd, source, generated, shapes) for source in sources for crd in source.all
    )


def has_own_kind(imported: ImportedCrd) -> bool:
    """Return whether provider.yaml generates the CRD, with or without a contract role."""
    return not any(each.what == "kind" and not each.path for each in imported.differences)


def add_machine_kinds(
    data: dict[str, Any], sources: Iterable[SourceCrd], refusals: Iterable[Refusal]
) -> bool:
    """Declare a machine kind as a field of each pool whose machines feature was refused.

    Modifies ``data``, and returns whether any field was added.
    """
    refused = {each.path[:2] for each in refusals if each.path[2:] == ("features", MACHINES)}
    found = False
    for source in sources:
        path = (source.section, source.crd.kind)
        entry = mapping_of(data, *path)
        if path not in refused or not entry:
            continue
        written = data[path[0]][path[1]]
        for version in source.crd.versions:
            schema = mapping_of(version.schema, "properties", "status", "properties", _MACHINE_KIND)
            of_version = mapping_of(written, "versions", version.name)
            if not schema or not (version.storage or "contractFields" in of_version):
                continue
            part = written if version.storage else written["versions"][version.name]
            fields = part.setdefault("contractFields", {}).setdefault("status", {})
            fields[_MACHINE_KIND] = convert_field(normalize(schema))
            found = True
    return found
