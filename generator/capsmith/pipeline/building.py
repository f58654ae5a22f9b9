"""A resolved provider -> the files of its repository, and whether they keep the contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from capsmith import __version__, resources
from capsmith.blueprint.format import Formatter
from capsmith.blueprint.manifest import load_manifest
from capsmith.blueprint.overlay import PROJECT, Overlay
from capsmith.blueprint.plan import plan
from capsmith.blueprint.render import render
from capsmith.findings import Finding, ordered
from capsmith.provider.model import Provider
from capsmith.safetext import RelativePath
from capsmith.tree import FileTree, GeneratedFile, Owner, digest
from capsmith.workspace.cache import FolderCache
from capsmith.workspace.texts import read_texts

SCHEMA_PATH = RelativePath(".capsmith/provider.schema.json")


def build(provider: Provider) -> FileTree:
    """The whole repository of a provider, in memory.

    Raises BlueprintError for a broken blueprint.
    """
    sources = read_texts(resources.blueprints())
    entries = load_manifest(sources["manifest.yaml"], "blueprints/manifest.yaml")
    tree = render(plan(entries, provider), sources, FolderCache.of_user(), __version__)
    schema = GeneratedFile(SCHEMA_PATH, schema_text(), Owner.GENERATED)
    return FileTree.of([*tree, schema])


def build_overlaid(
    provider: Provider, overlay: Overlay
) -> tuple[FileTree | None, tuple[Finding, ...]]:
    """The same with an overlay on top, and what is wrong with its blueprints or what they make.

    There is no tree when a blueprint is broken.

    Raises BlueprintError for a broken blueprint of capsmith's own.
    """
    # Imported when there is an overlay: the sandbox is of no use otherwise.
    from capsmith.blueprint.overlaid import Press, plan_rows

    sources = read_texts(resources.blueprints())
    cache = FolderCache.of_user()
    entries = load_manifest(sources["manifest.yaml"], "blueprints/manifest.yaml")
    planned = plan(entries, provider)
    added, found = plan_rows(overlay, provider, planned)
    theirs = {file.path for file in planned if PROJECT + file.entry.source in overlay.sources}
    press = Press(overlay, sources, Formatter(cache))
    press.check()
    over = [*(file for file in planned if file.path in theirs), *added]
    made = press.render(over)
    found += press.findings
    if found:
        return None, ordered(found)
    rest = [file for file in planned if file.path not in theirs]
    schema = GeneratedFile(SCHEMA_PATH, schema_text(), Owner.GENERATED)
    tree = FileTree.of([*render(rest, sources, cache, __version__), *made, schema])
    origins = {str(file.path): f"{overlay.where}/{PROJECT}{file.entry.source}" for file in over}
    return tree, tuple(_blamed(each, origins) for each in conformance(tree, provider))


def _blamed(finding: Finding, origins: Mapping[str, str]) -> Finding:
    """``finding``, with the blueprint of the author's that it comes from."""
    origin = origins.get(finding.location.file)
    if origin is None:
        return finding
    return replace(finding, hint=f"{finding.hint}  Its blueprint is {origin}.".strip())


def conformance(tree: FileTree, provider: Provider) -> tuple[Finding, ...]:
    """What the rendered manifests break in the contract: the proof that generation was right."""
    files = [file for file in tree if file.path.endswith(".yaml") and file.path[0] != "."]
    cache = FolderCache.of_user()
    said = "".join(file.path + file.digest for file in files)
    contracts = "-".join(contract.version for contract in provider.contracts)
    key = f"conforms-{__version__}-{contracts}-{_rules_digest()}-{digest(said)}"
    if cache is not None and cache.get(key) is not None:
        return ()
    findings = _evaluated(files, provider)
    if cache is not None and not findings:
        cache.put(key, b"")
    return findings


def _evaluated(files: list[GeneratedFile], provider: Provider) -> tuple[Finding, ...]:
    # Imported when needed: a tree that was seen before does without.
    from capsmith.conformance.evaluate import evaluate_manifests
    from capsmith.conformance.manifests import parse_manifests

    parsed = [parse_manifests(file.text, file.path) for file in files]
    manifests = [manifest for found, _ in parsed for manifest in found]
    roles = {str(resource.crd_name): resource.role.value for resource in provider.resources}
    syntax = [finding for _, found in parsed for finding in found]
    broken = {
        finding: None
        for contract in provider.contracts
        for finding in evaluate_manifests(manifests, contract, roles)
    }
    return ordered([*syntax, *broken])


def _rules_digest() -> str:
    rules = read_texts(resources.schemas() / "contracts")
    return digest("".join(path + text for path, text in rules.items()))


def schema_text() -> str:
    """The JSON Schema of provider.yaml."""
    return (resources.schemas() / "provider.schema.json").read_text(encoding="utf-8")
