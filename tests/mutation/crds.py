"""Break names, metadata and labels of CRDs, and metadata.yaml."""

from __future__ import annotations

from collections.abc import Iterator

from capsmith.judge.checks.versions import Which
from capsmith.manifests.bundle import Artefact
from tests.mutation.mutants import (
    Document,
    Mutant,
    Site,
    drop,
    edited,
    operator,
    put,
    removed,
    version_path,
    with_version,
)

_LABELS = ("cluster.x-k8s.io/v1beta1", "cluster.x-k8s.io/v1beta2")
_NAMES = ("spec", "names")


@operator("crd-scope")
def scope(site: Site) -> Iterator[Mutant]:
    for crd in site.context.crds():
        yield edited(crd.manifest, "scope Cluster", put(("spec", "scope"), "Cluster"))


@operator("crd-name")
def name(site: Site) -> Iterator[Mutant]:
    for crd in site.bundle.crds:
        other = f"x{crd.manifest.name}"
        yield edited(crd.manifest, f"called {other}", put(("metadata", "name"), other))
        yield edited(crd.manifest, "another plural", put((*_NAMES, "plural"), "others"))


@operator("crd-kind")
def kind(site: Site) -> Iterator[Mutant]:
    for crd in site.context.crds():
        for other in (f"0{crd.kind}", f"{'A' * 64}{crd.kind}"):
            yield edited(crd.manifest, f"kind {other}", put((*_NAMES, "kind"), other))
        yield edited(crd.manifest, "another listKind", put((*_NAMES, "listKind"), "Others"))


@operator("crd-group")
def group(site: Site) -> Iterator[Mutant]:
    for crd in site.context.crds():
        for other in (f"{crd.group}_", f"{crd.group}.{'a' * 253}"):
            yield edited(crd.manifest, f"group {other}", put(("spec", "group"), other))


@operator("crd-status-subresource")
def status(site: Site) -> Iterator[Mutant]:
    for crd, version in site.context.versions():
        place = (*version_path(crd, version.name), "subresources", "status")
        yield edited(crd.manifest, f"{version.name} has no status", drop(place))


@operator("crd-category")
def category(site: Site) -> Iterator[Mutant]:
    for crd in site.context.crds():
        yield edited(crd.manifest, "no category", put((*_NAMES, "categories"), []))


@operator("crd-printer-columns")
def columns(site: Site) -> Iterator[Mutant]:
    columns = {entry.role: entry.names for entry in site.params.columns}
    for crd, version in site.context.versions():
        place = (*version_path(crd, version.name), "additionalPrinterColumns")
        for name in columns.get(crd.role, ()):
            left = [{"name": other} for other in version.columns if other != name]
            yield edited(crd.manifest, f"no column {name}", put(place, left))


@operator("crd-label")
def label(site: Site) -> Iterator[Mutant]:
    for crd in site.context.crds():
        given = {site.params.label, site.params.otherwise}
        left = {key: value for key, value in crd.labels.items() if key not in given}
        yield edited(crd.manifest, f"no {site.params.label}", put(("metadata", "labels"), left))


@operator("contract-label-there")
def label_there(site: Site) -> Iterator[Mutant]:
    label = site.context.contract.label
    for crd in site.context.crds():
        left = {key: value for key, value in crd.labels.items() if key not in _LABELS}
        yield edited(crd.manifest, "no contract label", put(("metadata", "labels"), left))
        empty = {**left, label: "_"}
        yield edited(crd.manifest, "an empty label", put(("metadata", "labels"), empty))

        def misplaced(document: Document, left: dict[str, object] = left) -> None:
            document["metadata"]["labels"] = left
            document["metadata"]["annotations"] = {label: "v1"}

        yield edited(crd.manifest, "an annotation instead", misplaced)


@operator("contract-label-served")
def label_served(site: Site) -> Iterator[Mutant]:
    label = site.context.contract.label
    for crd in site.context.crds():
        if label in crd.labels:
            chosen = site.params.which is Which.CHOSEN
            value = "v99" if chosen else f"{crd.labels[label]}_v0alpha0"
            yield edited(crd.manifest, f"names {value}", put(("metadata", "labels", label), value))


@operator("contract-label-exclusive")
def label_exclusive(site: Site) -> Iterator[Mutant]:
    for crd in site.context.crds():
        own = crd.labels[site.context.contract.label]
        labels = {**crd.labels, **dict.fromkeys(_LABELS, own)}
        yield edited(crd.manifest, "both labels", put(("metadata", "labels"), labels))


@operator("contract-label-every-served")
def label_every_served(site: Site) -> Iterator[Mutant]:
    for crd in site.context.crds():
        yield with_version(crd, lambda stored, other: None)


@operator("contract-label-alike")
def label_alike(site: Site) -> Iterator[Mutant]:
    crds = site.context.crds()
    for crd in crds if len(crds) > 1 else ():
        missing = [key for key in _LABELS if key not in crd.labels]
        if missing:
            place = ("metadata", "labels", missing[0])
            yield edited(crd.manifest, "another contract too", put(place, "v1"))
        else:
            other = next(key for key in _LABELS if key != site.context.contract.label)
            if not crd.labelled(other):
                continue
            yield edited(crd.manifest, f"no {other}", drop(("metadata", "labels", other)))


@operator("metadata-agrees-with-labels")
def metadata_agrees(site: Site) -> Iterator[Mutant]:
    labelled = any(set(_LABELS) & set(crd.labels) for crd in site.context.crds())
    for metadata in site.bundle.files(Artefact.METADATA) if labelled else ():
        series = metadata.document["releaseSeries"]
        newest = max(range(len(series)), key=lambda n: (series[n]["major"], series[n]["minor"]))
        known = site.params.contracts
        other = next(each for each in known if each != series[newest]["contract"])
        place = ("releaseSeries", newest, "contract")
        yield edited(metadata, f"contract {other}", put(place, other))


@operator("metadata-there")
def there(site: Site) -> Iterator[Mutant]:
    if site.bundle.files(Artefact.METADATA):
        yield removed(*site.bundle.files(Artefact.METADATA))


@operator("metadata-field")
def field(site: Site) -> Iterator[Mutant]:
    for metadata in site.bundle.files(Artefact.METADATA):
        yield edited(metadata, f"another {site.params.field}", put((site.params.field,), "Other"))


@operator("metadata-field-there")
def field_there(site: Site) -> Iterator[Mutant]:
    for metadata in site.bundle.files(Artefact.METADATA):
        yield edited(metadata, f"no {site.params.field}", drop((site.params.field,)))


@operator("metadata-series-there")
def series_there(site: Site) -> Iterator[Mutant]:
    for metadata in site.bundle.files(Artefact.METADATA):
        yield edited(metadata, "no series", put(("releaseSeries",), []))


@operator("metadata-series-types")
def series_types(site: Site) -> Iterator[Mutant]:
    for metadata in site.bundle.files(Artefact.METADATA):
        for key, value in (("major", "0"), ("minor", True), ("contract", 1)):
            place = ("releaseSeries", 0, key)
            yield edited(metadata, f"{key} is {value!r}", put(place, value))


@operator("metadata-has-release")
def has_release(site: Site) -> Iterator[Mutant]:
    for metadata in site.bundle.files(Artefact.METADATA):

        def moved(document: Document) -> None:
            for entry in document["releaseSeries"]:
                entry["minor"] += 50

        yield edited(metadata, "other series", moved)


@operator("metadata-contracts")
def contracts(site: Site) -> Iterator[Mutant]:
    for metadata in site.bundle.files(Artefact.METADATA):
        for value in ("v1beta9", site.params.former[-1]):

            def all_of(document: Document, value: str = value) -> None:
                for entry in document["releaseSeries"]:
                    entry["contract"] = value

            yield edited(metadata, f"contract {value}", all_of)


@operator("metadata-series-once")
def series_once(site: Site) -> Iterator[Mutant]:
    for metadata in site.bundle.files(Artefact.METADATA):
        entries = metadata.document["releaseSeries"]
        yield edited(metadata, "a series twice", put(("releaseSeries",), [*entries, entries[0]]))
