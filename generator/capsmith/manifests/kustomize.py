"""Build objects from source manifests like kustomize, but only as exactly as the checks require.

Applies names, namespaces, labels, images and merge patches, but no JSON patches, generators or
replacements.  Does not open files: only references to the given manifests are followed.
"""

from __future__ import annotations

import copy
import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from capsmith.manifests.parse import Manifest, list_of, mapping_of, parse_manifests, text_of


# Strategic merge patches, as far as checks need them: mappings are merged, null deletes, lists of
# named items are merged by name, and all other lists are replaced.  JSON patches are not applied.
@dataclass(frozen=True, slots=True)
class Patch:
    """A merge patch in a kustomization, and the objects it applies to."""

    document: Mapping[str, Any]
    target: Mapping[str, Any]
    """The kustomization's ``target``; empty if the patch itself names the object."""

    def fits(self, manifest: Manifest, original_name: str) -> bool:
        """Return whether the patch applies to ``manifest``.

        ``original_name`` is the manifest's name before prefixes were added.
        """
        names = {manifest.name, original_name}
        if not self.target:
            target_name = text_of(self.document, "metadata", "name")
            return text_of(self.document, "kind") == manifest.kind and target_name in names
        group, _, version = text_of(manifest.document, "apiVersion").rpartition("/")
        values = {"group": {group}, "version": {version}, "kind": {manifest.kind}, "name": names}
        if not set(self.target) <= set(values):
            return False
        try:
            # kustomize matches targets with anchored regular expressions, whose syntax in Go may
            # differ from Python's.
            return all(
                not text_of(self.target, key) or any(map(re.compile(pattern).fullmatch, known))
                for key, known in values.items()
                for pattern in [text_of(self.target, key)]
            )
        except re.error:
            return False

    def apply(self, manifest: Manifest) -> None:
        """Merge the patch into the manifest's document in place, but keep its API version, kind and
        name."""
        document: Any = manifest.document
        for key, value in self.document.items():
            if key == "metadata":
                value = {k: v for k, v in mapping_of(value).items() if k != "name"}
            if key not in {"apiVersion", "kind"}:
                document[key] = merge(document.get(key), value)


def merge(base: Any, patch: Any) -> Any:
    """Return ``base`` with ``patch`` merged into it, without modifying either."""
    if isinstance(patch, Mapping):
        # What a patch adds has no nulls, either.
        result = dict(base) if isinstance(base, Mapping) else {}
        for key, value in patch.items():
            if value is None:
                result.pop(key, None)
            else:
                result[key] = merge(result.get(key), value)
        return result
    # Without the schema, a list whose items all have names is assumed to be merged by name.
    if _named(base) and _named(patch):
        return _by_name(base, patch)
    return copy.deepcopy(patch)


def _by_name(base: list[Any], patch: list[Any]) -> list[Any]:
    changes = {item["name"]: item for item in patch}
    there = {item["name"] for item in base}
    new = [copy.deepcopy(item) for item in patch if item["name"] not in there]
    return [merge(item, changes.get(item["name"], {})) for item in base] + new


def _named(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, Mapping) and text_of(item, "name") for item in value)
    )


CLUSTER_SCOPED = frozenset(
    {
        *("Namespace", "Node", "PersistentVolume", "PodSecurityPolicy", "PriorityClass"),
        *("CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding", "VolumeAttachment"),
        *("StorageClass", "CSIDriver", "CSINode", "RuntimeClass", "CustomResourceDefinition"),
        *("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ClusterIssuer"),
        *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "APIService"),
        *("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "ExtensionConfig"),
    }
)
"""Cluster-scoped kinds that providers commonly install."""
_ACCOUNT = "ServiceAccount"
# kustomize adds no prefix to these kinds.
_UNPREFIXED = frozenset({"Namespace", "CustomResourceDefinition", "APIService"})
KUSTOMIZATION_FILES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
REFERENCES = ("resources", "bases", "components")
"""Keys of a kustomization that list files and folders."""
MAX_COPIES = 64
"""Maximum number of copies of one object in a build.

Without a limit, kustomizations that each name the next one twice would double the copies at every
level.
"""


class _Copy(NamedTuple):
    manifest: Manifest
    source: Manifest
    """The object as it is in its file."""


def build(manifests: Sequence[Manifest], left_out: Collection[str] = ()) -> tuple[Manifest, ...]:
    """Build all kustomizations among the manifests. Objects outside of them stay unchanged.

    ``left_out`` lists folders of root kustomizations to leave out, along with the files that no
    other kustomization names.

    Each file is built once, by the root kustomization that reaches the most files.  As in
    kustomize, a file in a kustomization's folder is left out if no kustomization names it.
    """
    tree = Kustomizations(manifests)
    built: dict[str, list[Manifest]] = {}
    for root in tree.roots():
        if root in left_out:
            continue
        for manifest in tree.build(root):
            built.setdefault(manifest.file, []).append(manifest)
        for file in tree.reached(root):
            tree.done.add(file)
    done = built.keys() | {file for root in left_out for file in tree.reached(root)}
    rest = [m for m in manifests if m.file not in done and not tree.owns(m)]
    return (*rest, *(manifest for found in built.values() for manifest in found))


class Kustomizations:
    """The kustomizations among the given manifests, and the files they name."""

    def __init__(self, manifests: Sequence[Manifest]) -> None:
        self.done: set[str] = set()
        self._configured: set[str] = set()
        """Folders of kustomizations with configurations, their own or those of inner ones."""
        self._files: dict[str, list[Manifest]] = {}
        self._kustomizations: dict[str, Manifest] = {}
        for manifest in manifests:
            if manifest.base_name in KUSTOMIZATION_FILES:
                self._kustomizations[posixpath.dirname(manifest.file)] = manifest
            else:
                self._files.setdefault(manifest.file, []).append(manifest)

    @property
    def all(self) -> Mapping[str, Manifest]:
        """Return the kustomizations by folder path."""
        return self._kustomizations

    def objects(self, folder: str, name: str) -> Sequence[Manifest]:
        """Return the objects in a file; ``name`` is its path relative to ``folder``."""
        return self._files.get(posixpath.normpath(posixpath.join(folder, name)), ())

    def owns(self, manifest: Manifest) -> bool:
        """Return whether a file is in a kustomization's folder.

        Such a file has no effect unless a kustomization names it.
        """
        folder = posixpath.dirname(manifest.file)
        # The search ends at the top folder, whose `dirname` is the folder itself.
        while folder not in self._kustomizations and folder != posixpath.dirname(folder):
            folder = posixpath.dirname(folder)
        return folder in self._kustomizations

    def roots(self) -> list[str]:
        """Return the folders of kustomizations that no other kustomization names.

        The folder whose kustomization reaches the most files comes first.
        """
        named = {name for folder in self._kustomizations for name in self._named(folder)}
        roots = [folder for folder in self._kustomizations if folder not in named]
        # The root that reaches the most files builds shared files; ties are broken by name, so that
        # the order is stable.
        return sorted(roots, key=lambda folder: (-len(self.reached(folder)), folder))

    def reached(self, folder: str) -> set[str]:
        """Return the files that a kustomization names, directly or through other kustomizations."""
        return {
            name
            for below in self.list_below(folder)
            for name in self._named(below)
            if name not in self._kustomizations and name in self._files
        }

    def has_kind(self, folder: str, kind: str) -> bool:
        """Return whether a kustomization reaches a file with an object of a kind."""
        return any(
            manifest.kind == kind for name in self.reached(folder) for manifest in self._files[name]
        )

    def build(self, folder: str) -> list[Manifest]:
        """Return the objects that a kustomization builds, directly or through others that it names.

        Files in :attr:`done` are left out, because another root has built them.  A kustomization
        that is named by several others is built once, and each of these transforms copies of its
        objects, at most :data:`MAX_COPIES` per object.  If a kustomization names itself through
        others, which kustomize rejects, the cycle adds nothing.
        """
        built: dict[str, list[_Copy]] = {}
        for below in self.list_below(folder):
            built[below] = self._build_one(below, built)
        return [each.manifest for each in built[folder]]

    def list_below(self, folder: str) -> list[str]:
        """Return the folders of kustomizations that ``folder`` reaches, inner ones first.

        ``folder`` itself comes last.
        """
        # Without recursion, because a chain of folders can be longer than Python's stack.
        found, seen = [], {folder}
        path = [(folder, self._named(folder))]
        while path:
            above, names = path[-1]
            below = next((n for n in names if n in self._kustomizations and n not in seen), None)
            if below is None:
                found.append(above)
                path.pop()
            else:
                seen.add(below)
                path.append((below, self._named(below)))
        return found

    def _build_one(self, folder: str, built: Mapping[str, Sequence[_Copy]]) -> list[_Copy]:
        """Return the objects of a kustomization; ``built`` has those of the inner ones."""
        copies: list[_Copy] = []
        counts: Counter[int] = Counter()
        for name in self._named(folder):
            for manifest, source in self._list_parts(name, built):
                counts[id(source)] += 1
                if counts[id(source)] <= MAX_COPIES:
                    copies.append(_Copy(_copied(manifest), source))
        # As in kustomize, patches come before prefixes and namespaces, because they refer to
        # sources and not to results.  A patch may use an object's original or current name.
        for patch in self._patches(folder):
            for manifest, source in copies:
                if patch.fits(manifest, source.name):
                    patch.apply(manifest)
        # kustomize itself does not know the references of CRDs; these files name them.
        if self._kustomizations[folder].listing("configurations") or any(
            name in self._configured for name in self._named(folder)
        ):
            self._configured.add(folder)
        objects = [each.manifest for each in copies]
        document = self._kustomizations[folder].document
        _transform(document, objects, renames_crds=folder in self._configured)
        return copies

    def _list_parts(self, name: str, built: Mapping[str, Sequence[_Copy]]) -> Sequence[_Copy]:
        """Return the objects of a file or folder that a kustomization names."""
        if name in self._kustomizations:
            return built.get(name, ())
        files = () if name in self.done else self._files.get(name, ())
        return [_Copy(manifest, manifest) for manifest in files]

    def _patches(self, folder: str) -> Iterator[Patch]:
        kustomization = self._kustomizations[folder]
        entries = [*kustomization.listing("patches")]
        for text in kustomization.listing("patchesStrategicMerge"):
            is_file = isinstance(text, str) and "\n" not in text
            entries.append({"path": text} if is_file else {"patch": text})
        for entry in entries:
            inline, _ = parse_manifests(text_of(entry, "patch"), kustomization.file)
            for found in (*self.objects(folder, text_of(entry, "path")), *inline):
                yield Patch(found.document, mapping_of(entry, "target"))

    def _named(self, folder: str) -> Iterator[str]:
        document = self._kustomizations[folder].document
        for key in REFERENCES:
            for name in list_of(document, key):
                if isinstance(name, str):
                    path = posixpath.normpath(posixpath.join(folder, name))
                    yield "" if path == "." else path


def _copied(manifest: Manifest) -> Manifest:
    return replace(manifest, document=copy.deepcopy(manifest.document))


def _transform(
    kustomization: Mapping[str, Any], objects: list[Manifest], renames_crds: bool
) -> None:
    """Apply a kustomization; ``renames_crds`` is whether it renames Services in CRDs."""
    prefix = text_of(kustomization, "namePrefix")
    namespace = text_of(kustomization, "namespace")
    # Subjects are matched before anything is renamed, because afterwards another provider's may
    # look the same.
    accounts = list(_bound_accounts(objects))
    services = list(_called_services(objects, renames_crds))
    if prefix:
        _prefix(objects, prefix)
    if namespace:
        for manifest in objects:
            _namespace(manifest, namespace)
    for subject, account in accounts:
        subject["name"] = account.name
        if namespace:
            subject["namespace"] = namespace
    for service, is_renamed in services:
        if is_renamed:
            service["name"] = prefix + service["name"]
        if namespace:
            service["namespace"] = namespace
    for manifest in objects:
        document: Any = manifest.document
        common = mapping_of(kustomization, "commonLabels")
        if common:
            _label(document, common, selectors=True, pods=True)
        for entry in list_of(kustomization, "labels"):
            selectors = mapping_of(entry).get("includeSelectors") is True
            pods = selectors or mapping_of(entry).get("includeTemplates") is True
            _label(document, mapping_of(entry, "pairs"), selectors, pods)
        for image in list_of(kustomization, "images"):
            _image(document, mapping_of(image))


def _prefix(objects: list[Manifest], prefix: str) -> None:
    renamed: set[tuple[str, str]] = set()
    for manifest in objects:
        if manifest.kind not in _UNPREFIXED and manifest.name:
            renamed.add((manifest.kind, manifest.name))
            _child(manifest.document, "metadata")["name"] = prefix + manifest.name
    for manifest in objects:
        for holder, key, kind in _references(manifest.document):
            if (kind, text_of(holder, key)) in renamed:
                holder[key] = prefix + holder[key]


def _references(document: Any) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Yield the references to other objects as (mapping, key, kind of the object)."""
    reference = document.get("roleRef")
    if isinstance(reference, dict):
        yield reference, "name", text_of(reference, "kind")
    pod = _child(document, "spec", "template", "spec")
    yield pod, "serviceAccountName", _ACCOUNT
    for volume in list_of(pod, "volumes"):
        yield _child(volume, "secret"), "secretName", "Secret"
        yield _child(volume, "configMap"), "name", "ConfigMap"
    yield _child(document, "spec"), "policyName", "ValidatingAdmissionPolicy"


def _list_services(document: Any) -> Iterator[dict[str, Any]]:
    """Yield the references of webhooks to Services."""
    for webhook in list_of(document, "webhooks"):
        yield _child(webhook, "clientConfig", "service")
    yield _child(document, "spec", "conversion", "webhook", "clientConfig", "service")


def _bound_accounts(objects: Sequence[Manifest]) -> Iterator[tuple[dict[str, Any], Manifest]]:
    """Yield the subjects of bindings that are ServiceAccounts of the build, each with its account.

    A subject with the same name but another namespace belongs to another provider.
    """
    accounts = [manifest for manifest in objects if manifest.kind == _ACCOUNT]
    for manifest in objects:
        for subject in list_of(manifest.document, "subjects"):
            if text_of(subject, "kind") != _ACCOUNT:
                continue
            namespace = text_of(subject, "namespace")
            for account in accounts:
                own = text_of(account.document, "metadata", "namespace")
                if account.name == text_of(subject, "name") and namespace in ("", own):
                    yield subject, account


def _called_services(
    objects: Sequence[Manifest], renames_crds: bool
) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield the references of webhooks whose namespace follows that of the build.

    These are all references of CRDs, and those of other webhooks to Services of the build.  Each
    comes with whether it is renamed with the Service.
    """
    known = {
        (each.name, text_of(each.document, "metadata", "namespace"))
        for each in objects
        if each.kind == "Service"
    }
    for manifest in objects:
        is_crd = manifest.kind == "CustomResourceDefinition"
        for service in _list_services(manifest.document):
            is_built = (text_of(service, "name"), text_of(service, "namespace")) in known
            if is_built or (is_crd and service):
                yield service, is_built and (renames_crds or not is_crd)


def _namespace(manifest: Manifest, namespace: str) -> None:
    metadata = _child(manifest.document, "metadata")
    if manifest.kind == "Namespace":
        metadata["name"] = namespace
    elif manifest.kind not in CLUSTER_SCOPED:
        metadata["namespace"] = namespace
    for subject in list_of(manifest.document, "subjects"):
        # By itself, kustomize only sets the namespace of subjects named `default`.
        if text_of(subject, "kind") == _ACCOUNT and text_of(subject, "name") == "default":
            subject["namespace"] = namespace


def _label(document: Any, pairs: Mapping[str, Any], selectors: bool, pods: bool) -> None:
    metadata = _child(document, "metadata")
    metadata["labels"] = {**mapping_of(metadata, "labels"), **pairs}
    template = _child(document, "spec", "template", "metadata")
    if pods and "template" in mapping_of(document, "spec") and _is_workload(document):
        template["labels"] = {**mapping_of(template, "labels"), **pairs}
    selector = _child(document, "spec", "selector")
    if selectors and _is_workload(document):
        selector["matchLabels"] = {**mapping_of(selector, "matchLabels"), **pairs}


def _is_workload(document: Any) -> bool:
    return text_of(document, "kind") in {"Deployment", "DaemonSet", "StatefulSet"}


def _image(document: Any, image: Mapping[str, Any]) -> None:
    pod = _child(document, "spec", "template", "spec")
    for container in (*list_of(pod, "containers"), *list_of(pod, "initContainers")):
        name, suffix = _parted(text_of(container, "image"))
        if name == image.get("name"):
            tag, digest = text_of(image, "newTag"), text_of(image, "digest")
            # A new tag or digest replaces both.
            suffix = (f":{tag}" if tag else "") + (f"@{digest}" if digest else "") or suffix
            container["image"] = f"{image.get('newName') or name}{suffix}"


def _parted(image: str) -> tuple[str, str]:
    """Return an image's name, and its tag and digest with their separators."""
    name = image.partition("@")[0]
    before, colon, tag = name.rpartition(":")
    name = before if colon and "/" not in tag else name
    return name, image[len(name) :]


def _child(document: Any, *path: str) -> dict[str, Any]:
    """Return the mapping at ``path``, or a new, unattached mapping if there is none."""
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return document if isinstance(document, dict) else {}
