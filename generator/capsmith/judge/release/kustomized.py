"""Build source trees with kustomize, and keep track of positions in the source files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from capsmith.errors import UnreadableInput
from capsmith.judge.release.release import substitute
from capsmith.manifests.kustomize import Kustomizations
from capsmith.manifests.parse import Manifest, mapping_of, read_substituted, text_of

ORIGIN = "config.kubernetes.io/origin"
_NOT_IN_MEMORY = ("patchesJson6902", "replacements", "vars", "transformers", "helmCharts")
_HINT = "Verify the output of kustomize, or a release."


class BuiltFolder(NamedTuple):
    """The objects that kustomize built from one folder."""

    text: str
    name_of: Callable[[str], str]
    """Function that returns an object's file name for the path in its annotation."""


BuildFolder = Callable[[str], BuiltFolder]
ReadFile = Callable[[str], Sequence[Manifest]]


def build_with_kustomize(
    run: BuildFolder, read: ReadFile, manifests: Sequence[Manifest]
) -> tuple[Manifest, ...]:
    """Return the manifests, with every kustomization among them built by ``run``.

    ``read`` returns the objects in a file that is not among the manifests.  Kustomize components
    are only built as parts of other kustomizations.  Raises UnreadableInput if a build fails.
    """
    tree = Kustomizations(manifests)
    sources: dict[str, list[Manifest]] = {}
    for manifest in manifests:
        sources.setdefault(manifest.file, []).append(manifest)
    built: list[Manifest] = []
    done: set[str] = set()
    first = ""
    for root in tree.roots():
        reached = tree.reached(root)
        # The root that reaches the most files comes first: the others repeat its files or are parts
        # of it.
        kustomization = tree.all[root]
        if kustomization.kind == "Component" or (reached and reached <= done):
            continue
        if reached & done:
            raise UnreadableInput(
                "verify-several",
                f"this kustomization and {first} share files, but build separate releases",
                file=kustomization.file,
                hint="Specify the folder of one of them, or verify the output of kustomize.",
            )
        first = first or kustomization.file
        built.extend(_objects(run(root), kustomization, read, sources))
        done |= reached
    rest = [each for each in manifests if each.file not in done and not tree.owns(each)]
    return (*rest, *built)


def refuse_what_needs_kustomize(manifests: Sequence[Manifest]) -> None:
    """Raise UnreadableInput if the manifests use features that require kustomize itself."""
    tree = Kustomizations(manifests)
    for folder, kustomization in tree.all.items():
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


def _is_json_patch(entry: Any, tree: Kustomizations, folder: str) -> bool:
    patch = text_of(entry, "patch")
    if patch:
        return patch.lstrip().startswith(("-", "["))
    # A file of JSON patch operations is a list, and therefore no object.
    return not tree.objects(folder, text_of(entry, "path"))


def _objects(
    built: BuiltFolder, kustomization: Manifest, read: ReadFile, known: dict[str, list[Manifest]]
) -> Iterator[Manifest]:
    text = substitute(built.text)
    found, _ = read_substituted(text.text, kustomization.file, built.text)
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
