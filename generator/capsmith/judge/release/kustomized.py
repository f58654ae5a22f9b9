"""Build source trees with kustomize, and map positions back to the source files."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, NamedTuple

from capsmith.errors import UnreadableInput
from capsmith.judge.release.release import SourceFile, read_file
from capsmith.manifests.bundle import Artefact, classify_manifest
from capsmith.manifests.kustomize import Kustomizations, build
from capsmith.manifests.parse import Manifest, mapping_of, text_of
from capsmith.progress import track

ORIGIN = "config.kubernetes.io/origin"
_NOT_IN_MEMORY = ("patchesJson6902", "replacements", "vars", "transformers", "helmCharts")
_HINT = "Verify the output of kustomize, or a release."
_RELEASE = "default"
"""Name that kubebuilder gives the folder of the kustomization that builds the release."""


_SEVERAL = "verify-several"
_FOR_DEVELOPERS = re.compile(
    r"(^|[-_.])(ci|debug|dev|developer|development|e2e|kind|local|test|testing|tests|tilt)([-_.]|$)"
)
"""Names of overlays that are not released."""


class BuiltFolder(NamedTuple):
    """The YAML that kustomize built from one folder, for `capsmith verify`."""

    text: str
    name_of: Callable[[str], str]
    """Function that maps the path in an object's annotation to its file name."""


BuildFolder = Callable[[str], BuiltFolder]
ReadFile = Callable[[str], Sequence[Manifest]]


class BuiltTree(NamedTuple):
    """The objects in a source tree after kustomize has built it."""

    manifests: tuple[Manifest, ...]
    left_out: tuple[str, ...] = ()
    """Notes on files and kustomizations that are left out: each names a file and the reason."""


def build_with_kustomize(
    run: BuildFolder, read: ReadFile, manifests: Sequence[Manifest]
) -> BuiltTree:
    """Return the manifests, with every kustomization among them built by ``run``.

    ``read`` returns the objects in a file that is not among the manifests.  Kustomize components
    are built only as parts of other kustomizations.

    If there is a folder ``default``, from which kubebuilder projects build the release, or one
    overlay of it, other kustomizations may fail or build the same files differently: they are noted
    and left out.  So are objects outside of the release, unless clusterctl reads their files by
    name.  Raises UnreadableInput if any other build fails, or if two of them share files.
    """
    tree = Kustomizations(manifests)
    builder = _TreeBuilder(tree, run, read, manifests)
    roots, others = _split_roots(tree)
    for root in track("building kustomization", roots):
        builder.build_release(root)
    released = tuple(builder.built)
    for root in track("looking at kustomization", others):
        builder.build_or_note(root)
    # A file of a kustomization that is not built is no part of the release, either.
    done = builder.done | builder.left_out
    rest = [each for each in manifests if each.file not in done and not tree.owns(each)]
    beside = (*rest, *builder.built[len(released) :])
    kept = _find_release_files(beside) if _has_release(tree) else beside
    return BuiltTree((*kept, *released), _note(builder.not_built, beside, kept))


def leave_out_parts(manifests: Sequence[Manifest], named: Container[str]) -> BuiltTree:
    """Return the manifests without files that are parts of another file.

    Without kustomizations, a tree may have one file for users to apply, and its objects in files of
    their own as well.  ``named`` are the files that the user named, which are kept.
    """
    objects: dict[str, set[tuple[str, str]]] = {}
    files: dict[tuple[str, str], set[str]] = {}
    for manifest in manifests:
        if classify_manifest(manifest) is Artefact.SOURCE and manifest.file not in named:
            key = (manifest.kind, manifest.name)
            objects.setdefault(manifest.file, set()).add(key)
            files.setdefault(key, set()).add(manifest.file)
    wholes = {
        file: sorted(other for other in files[min(keys)] if keys < objects[other])
        for file, keys in objects.items()
    }
    parts = {file: found[0] for file, found in wholes.items() if found}
    notes = tuple(f"{file}: its objects are also in {whole}" for file, whole in parts.items())
    return BuiltTree(tuple(each for each in manifests if each.file not in parts), notes)


_CHART_DEPLOYMENT = re.compile(r"^kind: [\"']?Deployment\b", re.MULTILINE)
_CLUSTER_API = "cluster.x-k8s.io"


def leave_out_uninstalled(built: BuiltTree, templates: Mapping[str, str]) -> BuiltTree:
    """Return the tree without CRDs that nothing installs, as far as the tree shows.

    ``templates`` are the texts of the templates of Helm charts, by file name.  Where only these
    have a Deployment, a release has what its chart installs, and other CRDs may be there for code
    generators.  CRDs of Cluster API's groups or with its labels are kept, because a build may copy
    them into the chart.
    """
    text = "\n".join(templates.values())
    if not _CHART_DEPLOYMENT.search(text) or any(
        each.kind == "Deployment" for each in built.manifests
    ):
        return built
    charts = tuple(f"{posixpath.dirname(_find_templates(file))}/" for file in templates)
    kept: list[Manifest] = []
    files: set[str] = set()
    for each in built.manifests:
        is_installed = (
            each.kind != "CustomResourceDefinition"
            or each.file.replace("\\", "/").startswith(charts)
            or each.name in text
            or _is_of_cluster_api(each)
        )
        kept += [each] if is_installed else []
        files |= set() if is_installed else {each.file}
    dropped = sorted(files)
    if not dropped:
        return built
    more = f"; the same holds for {len(dropped) - 1} more" if len(dropped) > 1 else ""
    reason = "only a Helm chart has a Deployment, and it does not install this CRD"
    return BuiltTree(tuple(kept), (*built.left_out, f"{dropped[0]}: {reason}{more}"))


def _find_templates(file: str) -> str:
    """Return the outermost folder called ``templates`` of a Helm chart's template."""
    parts = file.replace("\\", "/").split("/")
    return "/".join(parts[: parts.index("templates") + 1])


def _is_of_cluster_api(crd: Manifest) -> bool:
    labels = crd.mapping("metadata", "labels")
    names = (text_of(crd.document, "spec", "group"), *(str(each).split("/")[0] for each in labels))
    return any(name == _CLUSTER_API or name.endswith(f".{_CLUSTER_API}") for name in names)


def _split_roots(tree: Kustomizations) -> tuple[list[str], list[str]]:
    """Return the folders of the kustomizations that build releases, and those of all others."""
    roots = [root for root in tree.roots() if tree.all[root].kind != "Component"]
    releases = _find_releases(tree, roots)
    return releases or roots, [root for root in roots if releases and root not in releases]


def _find_releases(tree: Kustomizations, roots: Sequence[str]) -> list[str]:
    """Return the folders of the kustomizations that say what is released; empty if unknown."""
    named = [root for root in roots if posixpath.basename(root) == _RELEASE]
    # A folder of this name without CRDs, beside roots that have some, is one release of several.
    with_crds = [root for root in roots if tree.has_kind(root, "CustomResourceDefinition")]
    if named and (not with_crds or not set(named).isdisjoint(with_crds)):
        return named
    if named:
        return []
    # One overlay of that folder may set the image of the release; several are several releases.
    overlays = [root for root in roots if _find_defaults(tree, root)]
    released = [root for root in overlays if not _FOR_DEVELOPERS.search(posixpath.basename(root))]
    if released:
        return released if len(released) == 1 else []
    return sorted({each for root in overlays for each in _find_defaults(tree, root)})


def _find_defaults(tree: Kustomizations, root: str) -> list[str]:
    """Return the folders called ``default`` on which a kustomization is based."""
    return [each for each in tree.list_below(root) if posixpath.basename(each) == _RELEASE]


class _TreeBuilder:
    """Builds the kustomizations of a tree, those that reach most files first."""

    def __init__(
        self, tree: Kustomizations, run: BuildFolder, read: ReadFile, manifests: Sequence[Manifest]
    ) -> None:
        self.built: list[Manifest] = []
        self._built_by: dict[str, str] = {}
        """Names of the files that a kustomization has built, and the name of its own file."""
        self.not_built: dict[str, str] = {}
        """Reasons by the name of the kustomization's file."""
        self.left_out: set[str] = set()
        """Names of the files of kustomizations that were not built."""
        self._tree, self._run, self._read = tree, run, read
        self._sources: dict[str, list[Manifest]] = {}
        for manifest in manifests:
            self._sources.setdefault(manifest.file, []).append(manifest)

    def build(self, root: str) -> None:
        """Build a kustomization, unless all its files have been built.

        Raises UnreadableInput if that fails, or if only some of its files have been built.
        """
        if _is_built(self._tree, root, self._built_by):
            return
        kustomization = self._tree.all[root]
        built = self._run(root)
        found, wrong, _ = read_file(SourceFile(kustomization.file, built.text), resume=True)
        self.built += _objects(built, found, kustomization, self._read, self._sources)
        for each in wrong:
            self.not_built[kustomization.file] = f"an object that it builds has {each.message}"
        self._built_by.update(dict.fromkeys(self._tree.reached(root), kustomization.file))

    @property
    def done(self) -> Set[str]:
        """Names of the files that a kustomization has built."""
        return self._built_by.keys()

    def build_release(self, root: str) -> None:
        """Build the kustomization of a release.

        If it is an overlay that cannot be built, as where it needs generated files, note the reason
        and build what it is based on.  Raises UnreadableInput if nothing can be built.
        """
        try:
            self.build(root)
        except UnreadableInput as error:
            bases = [each for each in _find_defaults(self._tree, root) if each != root]
            if not bases or error.finding.id == _SEVERAL:
                raise
            for base in bases:
                self.build(base)
            self.not_built[self._tree.all[root].file] = error.finding.message
            self.left_out |= self._tree.reached(root) - self._built_by.keys()

    def build_or_note(self, root: str) -> None:
        """Build a kustomization; if that fails, note the reason instead."""
        try:
            self.build(root)
        except UnreadableInput as error:
            self.not_built[self._tree.all[root].file] = error.finding.message
            self.left_out |= self._tree.reached(root)


def build_without_kustomize(manifests: Sequence[Manifest]) -> BuiltTree:
    """Return the manifests, with every kustomization among them built in memory.

    Leaves out the same kustomizations as :func:`build_with_kustomize`.  Raises UnreadableInput if a
    release needs a feature that is supported only by kustomize itself.
    """
    tree = Kustomizations(manifests)
    releases, others = _split_roots(tree)
    for root in releases:
        _require_simple(tree, root)
    built_by = {file: tree.all[root].file for root in releases for file in tree.reached(root)}
    not_built: dict[str, str] = {}
    left_out: list[str] = []
    for root in others:
        try:
            if not _is_built(tree, root, built_by):
                _require_simple(tree, root)
        except UnreadableInput as error:
            left_out.append(root)
            not_built[tree.all[root].file] = error.finding.message
    built = build(manifests, left_out)
    beside = tuple(each for each in built if each.file not in built_by)
    if not _has_release(tree):
        return BuiltTree(built, _note(not_built))
    kept = _find_release_files(beside)
    released = (each for each in built if each.file in built_by)
    return BuiltTree((*kept, *released), _note(not_built, beside, kept))


def _has_release(tree: Kustomizations) -> bool:
    """Return whether a kustomization in a folder ``default`` says what is released."""
    return bool(_find_releases(tree, tree.roots()))


def _find_release_files(beside: Sequence[Manifest]) -> tuple[Manifest, ...]:
    """Return the objects outside of the components that are in files that clusterctl reads."""
    return tuple(each for each in beside if classify_manifest(each) is not Artefact.SOURCE)


def _note(
    not_built: Mapping[str, str], beside: Sequence[Manifest] = (), kept: Sequence[Manifest] = ()
) -> tuple[str, ...]:
    """Return the notes on what is left out."""
    notes = [f"{file}: {reason}" for file, reason in not_built.items()]
    dropped = sorted({each.file for each in beside} - {each.file for each in kept})
    if dropped:
        more = f"; the same holds for {len(dropped) - 1} more" if len(dropped) > 1 else ""
        notes.append(f"{dropped[0]}: no kustomization called {_RELEASE} builds this file{more}")
    return tuple(notes)


def _require_simple(tree: Kustomizations, root: str) -> None:
    """Raise UnreadableInput if a kustomization uses features that require kustomize itself."""
    for folder in tree.list_below(root):
        kustomization = tree.all[folder]
        features = [key for key in _NOT_IN_MEMORY if kustomization.listing(key)]
        if any(_is_json_patch(each, tree, folder) for each in kustomization.listing("patches")):
            features.append("patches")
        if features:
            raise UnreadableInput(
                "verify-no-kustomize",
                f"{features[0]} of this kustomization can only be applied by kustomize, "
                "and neither kustomize nor kubectl is in PATH",
                file=kustomization.file,
                hint=f"Install one of them.  {_HINT}",
            )


def _is_built(tree: Kustomizations, root: str, built_by: Mapping[str, str]) -> bool:
    """Return whether all files of a kustomization have been built.

    ``built_by`` maps these files to the kustomization that built them.  Raises UnreadableInput,
    naming one of these, if only some of them have.
    """
    reached = tree.reached(root)
    # The root that reaches the most files comes first: the others repeat its files or are parts of
    # it.
    if reached and reached <= built_by.keys():
        return True
    shared = sorted(reached & built_by.keys())
    if shared:
        raise UnreadableInput(
            _SEVERAL,
            f"this kustomization and {built_by[shared[0]]} share files, "
            "but build separate releases",
            file=tree.all[root].file,
            hint="Specify the folder of one of them, or verify the output of kustomize.",
        )
    return False


def _is_json_patch(entry: Any, tree: Kustomizations, folder: str) -> bool:
    patch = text_of(entry, "patch")
    if patch:
        return patch.lstrip().startswith(("-", "["))
    # A file of JSON patch operations is a list, and therefore no object.
    return not tree.objects(folder, text_of(entry, "path"))


def _objects(
    built: BuiltFolder,
    found: Sequence[Manifest],
    kustomization: Manifest,
    read: ReadFile,
    known: dict[str, list[Manifest]],
) -> Iterator[Manifest]:
    """Yield the objects that were found in the output, each at its place in the sources."""
    for manifest in found:
        path = _take_origin(manifest)
        name = built.name_of(path) if path else ""
        # kustomize has read a base outside the given files; read it for its positions.
        if name and name not in known:
            known[name] = list(read(name))
        source = _source(manifest, known.get(name, ()))
        # Generated objects have no source except the kustomization.
        yield replace(source or kustomization, document=manifest.document)


def _take_origin(manifest: Manifest) -> str:
    """Remove the annotation that the build added, and return the path in the annotation."""
    annotations: Any = mapping_of(manifest.document, "metadata", "annotations")
    origin = text_of(annotations, ORIGIN)
    if not origin:
        return ""
    # The release lacks this annotation, so checks must see the output without it.
    del annotations[ORIGIN]
    if not annotations:
        del manifest.document["metadata"]["annotations"]
    path = origin.strip().splitlines()[0]
    return path.removeprefix("path: ") if path.startswith("path: ") else ""


def _source(built: Manifest, candidates: Sequence[Manifest]) -> Manifest | None:
    """Return the source object from which ``built`` was created; its name may lack a prefix."""
    # Matched by kind and the end of the name, because kustomize may have added a prefix and changed
    # the namespace.
    kin = [each for each in candidates if each.kind == built.kind]
    fitting = [each for each in kin if built.name.endswith(each.name)]
    return max(fitting or kin, key=lambda each: len(each.name), default=None)
