"""Build the files in a provider's repository in memory, and check them against the contract."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from capsmith import __version__, resources
from capsmith.blueprint.plan import load_manifest, plan_files
from capsmith.blueprint.render import Formatter, render
from capsmith.contract.reading import parse
from capsmith.findings import Finding, Severity
from capsmith.output.rbac.model import DeclaredPermissions, parse_permissions
from capsmith.output.reference import AUTHOR_API_PATH, select_author_api
from capsmith.output.runtime import (
    PERMISSIONS_FILE,
    SLICES_FILE,
    Library,
    Runtime,
    Slice,
    build_vendored_files,
    select_runtime,
)
from capsmith.provider.contract_fields import find_declared_crds
from capsmith.provider.model import Provider
from capsmith.safetext import RelativePath
from capsmith.tree import FileTree, GeneratedFile, Owner, digest
from capsmith.workspace.cache import FolderCache
from capsmith.workspace.reading import LazyTexts, read_texts

if TYPE_CHECKING:
    from capsmith.blueprint.overlay import Overlay


@cache
def load_runtime_library() -> Library:
    """Return the runtime library that capsmith ships."""
    sources = LazyTexts(resources.runtime())
    data: dict[str, Any] = parse(sources[SLICES_FILE], SLICES_FILE)
    slices = {
        name: Slice(*(tuple(entry.get(key, ())) for key in ("needs", "requires", "modules")))
        for name, entry in data["slices"].items()
    }
    return Library(
        __version__, sources, tuple(data["common"]["requires"]), slices, _Permissions(sources)
    )


class _Permissions(Mapping[str, "DeclaredPermissions"]):
    """The library's declared permissions, by folder; each file is validated when first used.

    A provider needs only a few of the files, and validating the others would take longer.
    """

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self._files = {
            path.removesuffix(f"/{PERMISSIONS_FILE}"): path
            for path in sources
            if path.endswith(f"/{PERMISSIONS_FILE}")
        }
        self._read: dict[str, DeclaredPermissions] = {}

    def __getitem__(self, folder: str) -> DeclaredPermissions:
        if folder not in self._read:
            path = self._files[folder]
            self._read[folder] = parse_permissions(parse(self._sources[path], path), path)
        return self._read[folder]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


_OF_SHAPES = frozenset({"CC-80", "MP-12", "RB-07"})
"""Ids of rules for templates and permissions that depend on the fields in CRDs."""
SCHEMA_PATH = RelativePath(".capsmith/provider.schema.json")


def build_checked(
    provider: Provider, overlay: Overlay | None, legacy_imports: bool = False
) -> tuple[FileTree | None, tuple[Finding, ...]]:
    """Return all files for a provider's repository, and findings about its overlay and manifests.

    The tree is None if the overlay is broken.  ``legacy_imports`` is described at :func:`build`.
    Raises BlueprintError if a built-in blueprint is broken.
    """
    if overlay is not None:
        return build_overlaid(provider, overlay, legacy_imports)
    tree = build(provider, legacy_imports)
    return tree, check_manifests(tree, provider)


def build(provider: Provider, legacy_imports: bool = False) -> FileTree:
    """Return all files for a provider's repository, in memory.

    ``legacy_imports`` adds modules that keep capsmith 0.1's import paths working.  Raises
    BlueprintError for a broken blueprint.
    """
    sources = read_texts(resources.blueprints())
    entries = load_manifest(sources["manifest.yaml"], "blueprints/manifest.yaml")
    library = load_runtime_library()
    runtime = select_runtime(provider, library, legacy_imports)
    tree = render(
        plan_files(entries, provider, runtime), sources, FolderCache.of_user(), __version__
    )
    return FileTree.of(
        [*tree, *_copies(provider, runtime), *build_vendored_files(runtime, library)]
    )


def build_overlaid(
    provider: Provider, overlay: Overlay, legacy_imports: bool = False
) -> tuple[FileTree | None, tuple[Finding, ...]]:
    """Return a repository's files with an overlay applied, and findings about the overlay.

    ``legacy_imports`` adds modules that keep capsmith 0.1's import paths working.  The tree is None
    if a blueprint in the overlay is broken.  Raises BlueprintError if a built-in blueprint is
    broken.
    """
    # Imported only if there is an overlay, because nothing else needs the sandbox.
    from capsmith.blueprint.overlay import PROJECT
    from capsmith.blueprint.overlay_render import OverlayRenderer, plan_rows

    sources = read_texts(resources.blueprints())
    cache = FolderCache.of_user()
    entries = load_manifest(sources["manifest.yaml"], "blueprints/manifest.yaml")
    library = load_runtime_library()
    runtime = select_runtime(provider, library, legacy_imports)
    planned = plan_files(entries, provider, runtime)
    copies = _copies(provider, runtime)
    own = [*(str(file.path) for file in planned), *(str(file.path) for file in copies)]
    added, found = plan_rows(overlay, provider, runtime, own)
    # Only the overlay's blueprints pass through the sandbox. capsmith's own blueprints are trusted,
    # and their compiled form is cached.
    replaced = {file.path for file in planned if PROJECT + file.entry.source in overlay.sources}
    renderer = OverlayRenderer(overlay, sources, Formatter(cache))
    renderer.check()
    overlaid = [*(file for file in planned if file.path in replaced), *added]
    rendered = renderer.render(overlaid)
    found += renderer.findings
    # No tree, so that nothing is compared with half of a repository.
    if found:
        return None, tuple(found)
    rest = [file for file in planned if file.path not in replaced]
    tree = FileTree.of(
        [
            *render(rest, sources, cache, __version__),
            *rendered,
            *copies,
            *build_vendored_files(runtime, library),
        ]
    )
    origins = {str(file.path): f"{overlay.where}/{PROJECT}{file.entry.source}" for file in overlaid}
    return tree, tuple(_blamed(each, origins) for each in check_manifests(tree, provider))


def _copies(provider: Provider, runtime: Runtime) -> tuple[GeneratedFile, ...]:
    """Return the files whose content capsmith ships unchanged."""
    page = resources.author_api().read_text(encoding="utf-8")
    api = select_author_api(page, runtime.slices, provider.package)
    return (
        GeneratedFile(SCHEMA_PATH, read_schema(), Owner.GENERATED),
        GeneratedFile(AUTHOR_API_PATH, api, Owner.GENERATED),
    )


def _blamed(finding: Finding, origins: Mapping[str, str]) -> Finding:
    """Return a finding that names the author's blueprint as its origin, if there is one.

    ``origins`` maps files to blueprints.
    """
    origin = origins.get(finding.location.file)
    if origin is None:
        return finding
    return finding._replace(hint=f"{finding.hint}  Its blueprint is {origin}.".strip())


def check_manifests(tree: FileTree, provider: Provider) -> tuple[Finding, ...]:
    """Return a finding for each place where the rendered manifests violate the contract."""
    files = [file for file in tree if file.path.endswith(".yaml") and file.path[0] != "."]
    cache = FolderCache.of_user()
    content = "".join(file.path + file.digest for file in files)
    contracts = "-".join(contract.version for contract in provider.contracts)
    # The key contains everything that the result depends on.  Only success is cached, because a
    # later run must print findings again with their positions.
    key = f"conforms-{__version__}-{contracts}-{_rules_digest()}-{digest(content)}"
    if cache is not None and cache.get(key) is not None:
        return ()
    findings = _evaluated(files, provider)
    if cache is not None and not findings:
        cache.put(key, b"")
    return findings


def _evaluated(files: list[GeneratedFile], provider: Provider) -> tuple[Finding, ...]:
    # Imported only if needed: a tree that was checked before does not need it.
    from capsmith.judge.checks.evaluate import evaluate_manifests
    from capsmith.manifests.parse import parse_manifests

    parsed = [parse_manifests(file.text, file.path) for file in files]
    manifests = [manifest for found, _ in parsed for manifest in found]
    roles = {str(resource.crd_name): resource.role.value for resource in provider.resources}
    syntax = [finding for _, found in parsed for finding in found]
    broken = {
        finding: None
        for contract in provider.contracts
        for finding in evaluate_manifests(manifests, contract, roles)
    }
    declared = find_declared_crds(provider)
    return (*syntax, *(_tolerated(each, declared) for each in broken))


def _tolerated(finding: Finding, declared: frozenset[str]) -> Finding:
    """Return a warning instead of an error if the author declares that a CRD must be as it is.

    Declarations with which nothing would work were already reported as errors in provider.yaml.
    """
    is_declared = PurePosixPath(finding.location.file).name in declared
    is_declared |= bool(declared) and finding.id in _OF_SHAPES
    if not is_declared or finding.severity is not Severity.ERROR:
        return finding
    return finding._replace(severity=Severity.WARNING)


@cache
def _rules_digest() -> str:
    rules = read_texts(resources.schemas() / "contracts")
    return digest("".join(path + text for path, text in rules.items()))


def read_schema() -> str:
    """Return the JSON Schema for provider.yaml."""
    return (resources.schemas() / "provider.schema.json").read_text(encoding="utf-8")
