"""Mistakes as data, put into releases in the shape of public ones, and what verify finds of them.

``python -m tests.mutation.seeds [CLASS...]`` prints the table, and each mistake that is missed or
found by another rule than its own.
"""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from capsmith import resources
from capsmith.contract.compatibility import load_compatibility
from capsmith.contract.load import list_versions, load_contract
from capsmith.contract.model import Contract, EffectClass
from capsmith.judge.release.judge import judge
from capsmith.judge.release.model import VerifyOptions
from capsmith.judge.release.release import ReleaseFiles, SourceFile, read_release
from capsmith.judge.release.targets import list_targets

Document = dict[str, Any]
_PUBLIC = Path(__file__).with_name("public")
_SEEDS = Path(__file__).with_name("seeds.yaml")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_VERSION = "spec/versions/[storage=True]"


class Mistake(NamedTuple):
    """One mistake of a class."""

    part: str
    """What fails: kube-apiserver, clusterctl, core, or the management cluster."""
    group: str
    """The class."""
    data: Mapping[str, Any]
    rules: frozenset[str]
    """Ids of which one has to find it."""

    @property
    def text(self) -> str:
        return str(self.data["what"])


class Seeded(NamedTuple):
    """A release with one mistake."""

    mistake: Mistake
    release: str
    files: Mapping[str, tuple[Document | str, ...]]
    """Documents of the files that differ, as data or text; none if the file is gone."""
    original: Mapping[str, tuple[Document, ...]]
    """All files of the release itself."""

    @property
    def name(self) -> str:
        return f"{self.release}: {self.mistake.group}: {self.mistake.text}"


@dataclass(frozen=True)
class Public:
    """A release in the shape of a public provider's."""

    name: str
    files: Mapping[str, tuple[Document, ...]]

    def texts(self) -> dict[str, str]:
        """Return the files as they are seeded and judged."""
        return {name: _dump(documents) for name, documents in self.files.items()}


@cache
def load_public() -> tuple[Public, ...]:
    """Return the releases in ``public``: three providers of different shape."""
    found = []
    for folder in sorted(_PUBLIC.iterdir()):
        files = {
            file.relative_to(folder).as_posix(): tuple(
                yaml.load_all(file.read_text(encoding="utf-8"), _LOADER)
            )
            for file in sorted(folder.rglob("*.yaml"))
        }
        found.append(Public(folder.name, files))
    return tuple(found)


@cache
def load_mistakes() -> tuple[Mistake, ...]:
    """Return all mistakes in the order of ``seeds.yaml``."""
    groups = yaml.safe_load(_SEEDS.read_text(encoding="utf-8"))
    return tuple(
        Mistake(g["part"], g["class"], data, frozenset(data.get("rules", g["rules"])))
        for g in groups
        for data in g["mistakes"]
    )


def seed(public: Public, mistake: Mistake) -> Seeded | None:
    """Return the release with the mistake; None if the release has no place for it."""
    if public.name not in mistake.data.get("only", (public.name,)):
        return None
    for file, documents in public.files.items():
        for number, document in enumerate(documents):
            if not _fits(mistake.data["in"], file, document):
                continue
            try:
                files = _edit(public, mistake.data, file, number)
            except (KeyError, IndexError, StopIteration):
                continue
            return Seeded(mistake, public.name, files, public.files)
    return None


def _fits(wanted: Mapping[str, str], file: str, document: Document) -> bool:
    names = document.get("spec", {}).get("names", {}) if isinstance(document, dict) else {}
    return (
        bool(re.fullmatch(wanted.get("kind", ".*"), document["kind"]))
        and bool(re.search(wanted.get("crd", ""), names.get("kind", "")))
        and bool(re.search(wanted.get("api", ""), document["apiVersion"]))
        and bool(re.search(wanted.get("name", ""), document.get("metadata", {}).get("name", "")))
        and bool(re.search(wanted.get("file", ""), file))
    )


def _edit(
    public: Public, data: Mapping[str, Any], file: str, number: int
) -> dict[str, tuple[Document | str, ...]]:
    """Return the changed files; KeyError, IndexError or StopIteration if there is no place."""
    documents: list[Document | str] = list(public.files[file])
    if "rename" in data:
        old, new = data["rename"]
        return {file: (), re.sub(old, new, file): tuple(documents)}
    target = copy.deepcopy(public.files[file][number])
    documents[number] = target
    if "text" in data:
        documents[number] = _rewrite(target, *data["text"])
    elif "copy" in data:
        documents.append({**target, **data["copy"]})
    elif data.get("remove"):
        del documents[number]
    elif "versions" in data:
        _add_version(target, data["versions"])
    else:
        _change(target, data, _places(public, file, target))
    return {file: tuple(documents)}


def _rewrite(document: Document, old: str, new: str) -> str:
    text, count = re.subn(old, new, _dump([document]))
    if not count:
        raise KeyError(old)
    return text


def _change(target: Document, data: Mapping[str, Any], places: Mapping[str, str]) -> None:
    """Set, remove or append at the path ``at``."""
    path = data["at"]
    for name, value in places.items():
        path = path.replace(f"{{{name}}}", value)
    steps = [step.replace("~", "/") for step in re.findall(r"\[[^]]*\]|[^/]+", path)]
    current: Any = target
    for step in steps[:-1]:
        current = _follow(current, step, is_made="put" in data)
    last: Any = int(steps[-1]) if isinstance(current, list) else steps[-1]
    if data.get("drop"):
        del current[last]
    elif "add" in data:
        current[last].append(data["add"])
    else:
        value = copy.deepcopy(data["put"])
        current[last] = (
            value.format(**places) if isinstance(value, str) and "{{" not in value else value
        )


def _follow(current: Any, step: str, *, is_made: bool) -> Any:
    if step.startswith("["):
        key, _, value = step[1:-1].partition("=")
        return next(item for item in current if str(_nested(item, key)) == value)
    if isinstance(current, list):
        return current[int(step)]
    if not isinstance(current, dict):
        raise KeyError(step)
    return current.setdefault(step, {}) if is_made else current[step]


def _nested(item: Any, path: str) -> Any:
    for step in path.split("/"):
        item = item[int(step)] if isinstance(item, list) else item.get(step)
    return item


def _places(public: Public, file: str, target: Document) -> dict[str, str]:
    """Return what stands for the names in braces."""
    folder = file.rpartition("/")[0]
    near = (d for name, docs in public.files.items() if name.startswith(folder) for d in docs)
    crd = next(document for document in near if document["kind"] == "CustomResourceDefinition")
    schema = f"{_VERSION}/schema/openAPIV3Schema"
    status: Any = {}
    if target["kind"] == crd["kind"]:
        stored = next(v for v in target["spec"]["versions"] if v["storage"])
        status = stored["schema"]["openAPIV3Schema"]["properties"].get("status", {})
    flags = ("initialization", "initialized", "ready")
    declared = status.get("properties", {})
    return {
        "version": _VERSION,
        "schema": schema,
        "pod": "spec/template/spec",
        "flag": next((flag for flag in flags if flag in declared), "ready"),
        "group": crd["spec"]["group"],
        "prefix": public.name.capitalize(),
        "name": public.name,
        "namespace": target.get("metadata", {}).get("namespace", f"{public.name}-system"),
    }


def _add_version(crd: Document, properties: Mapping[str, Any]) -> None:
    """Add a served version without conversion, with changed fields; with no fields if none."""
    stored = next(version for version in crd["spec"]["versions"] if version["storage"])
    added = {**copy.deepcopy(stored), "name": "v1alpha0", "storage": False}
    spec = added["schema"]["openAPIV3Schema"]["properties"]["spec"]
    known = {k: v for k, v in properties.items() if k in spec["properties"] or k == "seeded"}
    if properties and not known:
        raise KeyError(str(properties))
    spec["properties"] = {**spec["properties"], **known} if known else {}
    spec.pop("required", None)
    crd["spec"]["versions"].append(added)
    crd["spec"].pop("conversion", None)


def _dump(documents: Sequence[Document | str]) -> str:
    texts = (
        each if isinstance(each, str) else yaml.dump(each, Dumper=_DUMPER, sort_keys=False)
        for each in documents
    )
    return "---\n".join(texts)


class Found(NamedTuple):
    """What verify says of a seeded release, besides what it says of the release itself."""

    seeded: Seeded
    ids: frozenset[str]
    """Rules that something breaks, conditionally or not."""

    @property
    def is_found(self) -> bool:
        return bool(self.ids)

    @property
    def is_right(self) -> bool:
        return bool(self.ids & self.seeded.mistake.rules)


def find(seeded: Seeded, *, every_rule: bool) -> Found:
    """Judge a seeded release by every rule, or by those only that should find the mistake."""
    rules = None if every_rule else seeded.mistake.rules
    files = dict(_parsed(seeded.release))
    for name, documents in seeded.files.items():
        files.pop(name, None)
        if documents:
            files[name] = read_release([SourceFile(name, _dump(documents))])
    new = _breaches(files, rules) - _known(seeded.release, rules)
    return Found(seeded, frozenset(id for id, _, _ in new))


@cache
def _parsed(release: str) -> dict[str, ReleaseFiles]:
    (public,) = (each for each in load_public() if each.name == release)
    return {name: read_release([SourceFile(name, text)]) for name, text in public.texts().items()}


@cache
def _known(release: str, rules: frozenset[str] | None) -> frozenset[tuple[str, str, str]]:
    return _breaches(_parsed(release), rules)


def _breaches(
    files: Mapping[str, ReleaseFiles], rules: frozenset[str] | None
) -> frozenset[tuple[str, str, str]]:
    whole = ReleaseFiles(
        tuple(manifest for name in sorted(files) for manifest in files[name].manifests),
        tuple(finding for name in sorted(files) for finding in files[name].findings),
    )
    return frozenset(
        (each.id, each.subject, each.message)
        for each in judge(whole, _contracts(rules), _options())
        if each.effect is not EffectClass.ADVICE
    )


@cache
def _contracts(rules: frozenset[str] | None) -> Mapping[str, Contract]:
    whole = {v: load_contract(v, resources.schemas()) for v in list_versions()}
    if rules is None:
        return whole
    return {
        version: replace(c, rules={id: rule for id, rule in c.rules.items() if id in rules})
        for version, c in whole.items()
    }


@cache
def _options() -> VerifyOptions:
    return VerifyOptions(list_targets(load_compatibility(resources.schemas()).core).known)


def seed_all(groups: Sequence[str] = ()) -> Iterator[Seeded]:
    """Yield each release with each mistake that it has a place for."""
    for mistake in load_mistakes():
        if groups and mistake.group not in groups:
            continue
        for public in load_public():
            seeded = seed(public, mistake)
            if seeded is not None:
                yield seeded


def main() -> None:
    """Judge by all rules, and print the table."""
    found = [find(seeded, every_rule=True) for seeded in seed_all(sys.argv[1:])]
    print("| Class | Refused by | Injected | Found | By its rule |\n|---|---|---|---|---|")
    groups = dict.fromkeys((f.seeded.mistake.group, f.seeded.mistake.part) for f in found)
    for group, part in groups:
        own = [f for f in found if f.seeded.mistake.group == group]
        row = (group, part, len(own), sum(f.is_found for f in own), sum(f.is_right for f in own))
        print(f"| {' | '.join(map(str, row))} |")
    print(f"\n{len(found)} injected, {sum(f.is_found for f in found)} found, ", end="")
    print(f"{sum(f.is_right for f in found)} by their rule.")
    for each in found:
        if not each.is_right:
            print(
                f"{'other' if each.is_found else 'missed'}: {each.seeded.name} {sorted(each.ids)}"
            )


if __name__ == "__main__":
    main()
