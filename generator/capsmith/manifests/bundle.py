"""Group manifests by provider, classify their files, and determine the kinds' roles."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property, lru_cache
from pathlib import PurePosixPath

from capsmith.manifests.crds import Crd, find_field, read_crds
from capsmith.manifests.parse import Manifest

EXAMPLE_FOLDERS = frozenset({"examples", "samples"})
"""Folders of a source tree whose objects may be of another release."""
_ASIDE = EXAMPLE_FOLDERS | {"templates", "testdata"}
"""Folders whose objects are not installed."""
_KEPT_NAMES = 4096
_PLAIN = "components.yaml"
_CRD_FILE = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+_[a-z0-9]+\.yaml")

_POOL = "InfraMachinePool"
_MACHINE = "Machine"


class Artefact(StrEnum):
    """The purpose for which clusterctl uses a file, guessed mainly from the file name."""

    COMPONENTS = "components"
    METADATA = "metadata"
    CLUSTER_TEMPLATE = "cluster-template"
    CLUSTER_CLASS = "cluster-class"
    SOURCE = "source"
    """Any other file with a Kubernetes object. Components are built from these files."""
    ASIDE = "aside"
    """Samples, kustomizations, and YAML that is not a Kubernetes object."""


def classify_manifest(manifest: Manifest) -> Artefact:
    """Classify the file that contains a manifest.

    Release files are recognised by name, such as ``infrastructure-components.yaml`` or
    ``cluster-template-ha.yaml``.  Any other file is a source, unless it is in a folder for samples
    or does not contain a Kubernetes object.
    """
    name = manifest.base_name
    # Names come first, because the kinds of objects do not distinguish templates from components.
    # Templates come before components: a flavor may be called `disable-components`.
    if name.startswith("cluster-template"):
        return Artefact.CLUSTER_TEMPLATE
    if name.startswith("clusterclass-"):
        return Artefact.CLUSTER_CLASS
    is_components = name.endswith("components.yaml") or "-components-" in name
    # Without the type of a provider, the file may be another program's list of components.
    is_object = bool(manifest.kind or manifest.document.get("apiVersion"))
    # A kind may be called Components: controller-gen names the file of its CRD group_plural.yaml.
    if is_components and (is_object or name != _PLAIN) and not _CRD_FILE.fullmatch(name):
        return Artefact.COMPONENTS
    if name == "metadata.yaml" or (
        manifest.kind == "Metadata" and manifest.api_group == "clusterctl.cluster.x-k8s.io"
    ):
        return Artefact.METADATA
    aside = (
        _is_aside(manifest.file)
        or manifest.kind in {"", "Kustomization"}
        or not isinstance(manifest.document.get("apiVersion"), str)
    )
    return Artefact.ASIDE if aside else Artefact.SOURCE


@lru_cache(_KEPT_NAMES)
def _is_aside(file: str) -> bool:
    """Return whether a file is in a folder whose objects are not installed."""
    return not _ASIDE.isdisjoint(PurePosixPath(file.replace("\\", "/")).parts[:-1])


def _group_by_kind(manifests: Iterable[Manifest]) -> Mapping[str, tuple[Manifest, ...]]:
    found: dict[str, list[Manifest]] = {}
    for manifest in manifests:
        found.setdefault(manifest.kind, []).append(manifest)
    return {kind: tuple(each) for kind, each in found.items()}


@dataclass(frozen=True, eq=False)
class Installed:
    """The objects of all providers that are checked together, indexed by kind."""

    manifests: tuple[Manifest, ...] = ()

    @cached_property
    def crds(self) -> dict[tuple[str, str], Crd]:
        """Return the CRDs by group and kind. All roles are guessed, not taken from settings."""
        return {(crd.group, crd.kind): crd for crd in read_crds(self.manifests)}

    @cached_property
    def _by_group(self) -> Mapping[str, list[Crd]]:
        found: dict[str, list[Crd]] = {}
        for crd in self.crds.values():
            found.setdefault(crd.group, []).append(crd)
        return found

    def crds_in(self, group: str) -> Sequence[Crd]:
        """Return the CRDs in an API group."""
        return self._by_group.get(group, ())

    @cached_property
    def _by_kind(self) -> Mapping[str, tuple[Manifest, ...]]:
        return _group_by_kind(self.manifests)

    def of(self, kind: str) -> tuple[Manifest, ...]:
        """Return all providers' objects of a kind."""
        return self._by_kind.get(kind, ())

    @cached_property
    def names(self) -> frozenset[tuple[str, str]]:
        """Return the (kind, name) pairs of all providers' objects."""
        return frozenset((each.kind, each.name) for each in self.manifests)


class BundleFiles:
    """The manifests of a bundle, classified: what no choice of roles or API versions changes."""

    def __init__(self, manifests: tuple[Manifest, ...]) -> None:
        self.manifests = manifests
        self._of_kinds: dict[tuple[str, ...], tuple[Manifest, ...]] = {}

    @cached_property
    def _by_artefact(self) -> Mapping[Artefact, tuple[Manifest, ...]]:
        sorted_: dict[Artefact, list[Manifest]] = {}
        for manifest in self.manifests:
            sorted_.setdefault(classify_manifest(manifest), []).append(manifest)
        return {key: tuple(found) for key, found in sorted_.items()}

    def select(self, wanted: Artefact) -> tuple[Manifest, ...]:
        """Return the objects in the files that clusterctl uses for the given purpose."""
        return self._by_artefact.get(wanted, ())

    @cached_property
    def component_folders(self) -> frozenset[PurePosixPath]:
        """Return the folders of the components files."""
        first = {manifest.file: manifest for manifest in self.select(Artefact.COMPONENTS)}
        return frozenset(manifest.folder for manifest in first.values())

    @cached_property
    def objects(self) -> tuple[Manifest, ...]:
        """Return the objects to install."""
        return self.select(Artefact.COMPONENTS) or self.select(Artefact.SOURCE)

    @cached_property
    def crds(self) -> tuple[Crd, ...]:
        """Return the CRDs to install.  All roles are guessed."""
        return read_crds(self.objects)

    @cached_property
    def _by_kind(self) -> Mapping[str, tuple[Manifest, ...]]:
        return _group_by_kind(self.objects)

    def of(self, kinds: tuple[str, ...]) -> tuple[Manifest, ...]:
        """Return the objects to install whose kind is one of ``kinds``."""
        if len(kinds) == 1:
            return self._by_kind.get(kinds[0], ())
        found = self._of_kinds.get(kinds)
        if found is None:
            found = tuple(manifest for manifest in self.objects if manifest.kind in kinds)
            self._of_kinds[kinds] = found
        return found


@dataclass(frozen=True)
class Bundle:
    """One provider's manifests and its kinds' roles, as the input for static checks."""

    manifests: tuple[Manifest, ...]
    roles: Mapping[str, str]
    judged: Mapping[str, str] | None = None
    """API version that core uses, by CRD name. None if core may use every version in the labels."""
    release: str = ""
    """Version of the release, such as ``v1.2.3``; empty if it is the folder's name."""
    installed: Installed = Installed()
    """Objects of all providers that are checked together, including this one."""
    _files: BundleFiles = field(default=BundleFiles(()), repr=False, compare=False)
    """The classified manifests, which copies of the bundle share."""

    def __post_init__(self) -> None:
        if self._files.manifests is not self.manifests:
            object.__setattr__(self, "_files", BundleFiles(self.manifests))

    def files(self, wanted: Artefact) -> tuple[Manifest, ...]:
        """Return the objects in the files that clusterctl uses for the given purpose."""
        return self._files.select(wanted)

    @property
    def component_folders(self) -> frozenset[PurePosixPath]:
        """Return the folders of the components files."""
        return self._files.component_folders

    @property
    def objects(self) -> tuple[Manifest, ...]:
        """Return the objects in the components files or, if there are none, in the sources.

        These are the objects to install.
        """
        return self._files.objects

    @cached_property
    def crds(self) -> tuple[Crd, ...]:
        """Return the CRDs that clusterctl installs, with their roles."""
        judged = self.judged
        return tuple(
            replace(
                crd,
                role=self.roles.get(crd.manifest.name) or crd.role,
                judged=None if judged is None else judged.get(crd.manifest.name),
            )
            for crd in self._files.crds
        )

    @cached_property
    def known_crds(self) -> Mapping[tuple[str, str], Crd]:
        """Return all providers' CRDs by group and kind. This provider's CRDs take precedence."""
        own = {(crd.group, crd.kind): crd for crd in self.crds}
        return ChainMap(own, self.installed.crds)

    def crds_in(self, group: str) -> list[Crd]:
        """Return all providers' CRDs in an API group: this provider's, then the other kinds."""
        own = [crd for crd in self.crds if crd.group == group]
        kinds = {crd.kind for crd in own}
        return [*own, *(crd for crd in self.installed.crds_in(group) if crd.kind not in kinds)]

    def all_of(self, kind: str) -> tuple[Manifest, ...]:
        """Return the objects of a kind: this provider's, then the other providers'."""
        own = self.of(kind)
        # By identity, because two providers may ship equal objects, and manifests are not hashable.
        known = {id(manifest) for manifest in own}
        return (*own, *(each for each in self.installed.of(kind) if id(each) not in known))

    def has_named(self, kind: str, name: str) -> bool:
        """Return whether this provider or another one has an object of this kind and name."""
        is_own = any(each.name == name for each in self.of(kind))
        return is_own or (kind, name) in self.installed.names

    @cached_property
    def has_pools_only(self) -> bool:
        """Return whether the provider has a machine pool kind but no standalone machine kind."""
        roles = {crd.role for crd in self.crds if not self.is_pool_machine(crd)}
        return _POOL in roles and "InfraMachine" not in roles

    def is_judged(self, crd: Crd) -> bool:
        """Return whether core uses the kind with the contract version being checked."""
        return self.judged is None or crd.judged is not None

    def is_pool_machine(self, crd: Crd) -> bool:
        """Return whether a pool creates the machines of this kind (``<X>MachinePoolMachine``)."""
        pools = {(other.group, other.kind) for other in self.crds if other.role == _POOL}
        return crd.kind.endswith(_MACHINE) and (crd.group, crd.kind.removesuffix(_MACHINE)) in pools

    @cached_property
    def installs(self) -> bool:
        """Return whether the bundle is a complete provider, so that missing parts can be reported.

        A bundle with a Deployment is considered complete.
        """
        return bool(self.of("Deployment"))

    def of(self, *kinds: str) -> tuple[Manifest, ...]:
        """Return the objects to install whose kind is one of ``kinds``."""
        return self._files.of(kinds)


def split(manifests: Sequence[Manifest], roles: Mapping[str, str]) -> Iterator[Bundle]:
    """Split manifests into one bundle per provider.

    Each components file forms a bundle with the other release files in its folder.  If there is
    only one components file, its bundle has all manifests.  Without components files, each
    ``config`` folder that installs something is a bundle, together with all files outside such
    folders.
    """
    by_file: dict[str, list[Manifest]] = {}
    for manifest in manifests:
        by_file.setdefault(manifest.file, []).append(manifest)
    components = [
        file
        for file, found in by_file.items()
        if classify_manifest(found[0]) is Artefact.COMPONENTS
    ]
    if not components:
        yield from _split_sources(manifests, roles)
        return
    # With a single provider, every file belongs to it, whatever its folder.
    if len(components) == 1:
        yield Bundle(tuple(manifests), roles)
        return
    beside: dict[PurePosixPath, list[str]] = {}
    for file in by_file.keys() - set(components):
        beside.setdefault(PurePosixPath(file).parent, []).append(file)
    for file in components:
        files = {file, *beside.get(PurePosixPath(file).parent, ())}
        yield Bundle(
            tuple(each for file, found in by_file.items() if file in files for each in found), roles
        )


def _split_sources(manifests: Sequence[Manifest], roles: Mapping[str, str]) -> Iterator[Bundle]:
    installed = {
        _config_folder(manifest)
        for manifest in manifests
        if manifest.kind == "Namespace" and classify_manifest(manifest) is Artefact.SOURCE
    }
    folders = sorted(str(folder) for folder in installed if folder is not None)
    # A single provider, or sources in which no Namespace shows where one ends: judge them together.
    if len(folders) < 2:
        yield Bundle(tuple(manifests), roles)
        return
    for folder in folders:
        # Files outside config folders may belong to any of the providers, so each bundle gets them.
        others = {other for other in folders if other != folder}
        yield Bundle(
            tuple(each for each in manifests if str(_config_folder(each)) not in others), roles
        )


def _config_folder(manifest: Manifest) -> PurePosixPath | None:
    """Return the nearest parent folder named ``config``; by convention each provider has one."""
    parents = PurePosixPath(manifest.file.replace("\\", "/")).parents
    return next((folder for folder in parents if folder.name == "config"), None)


NONE = "none"
"""The role "none", for kinds that core never uses."""
_TELLING = {
    "InfraMachine": ("spec.providerID", "status.ready", "status.initialization"),
    "InfraCluster": ("spec.controlPlaneEndpoint", "status.ready", "status.initialization"),
    "InfraMachinePool": (
        *("spec.providerIDList", "status.ready", "status.initialization"),
        "status.infrastructureMachineKind",
    ),
    "BootstrapConfig": ("status.dataSecretName", "status.ready", "status.initialization"),
    "ControlPlane": ("spec.version", "status.initialized", "status.initialization", "status.ready"),
}
"""Fields by role; a kind with the role has at least one of them in some version."""


def find_roles(bundle: Bundle, given: Mapping[str, str]) -> dict[str, str]:
    """Return each CRD's role, by CRD name.

    ``given`` holds roles set by the user, by kind or CRD name.  A kind whose name suggests a role
    but that has neither a template nor any of that role's fields is a helper (role "none"), and so
    are machines without a provider ID beside the kind that has a template.
    """
    kinds = {(crd.group, crd.kind): crd.role for crd in bundle.crds}
    roles = {}
    for crd in bundle.crds:
        name = crd.manifest.name
        role = given.get(name) or given.get(crd.kind) or ""
        if not role and _is_helper(crd, kinds):
            role = NONE
        roles[name] = role or crd.role or NONE
    return roles


def _is_helper(crd: Crd, kinds: Mapping[tuple[str, str], str]) -> bool:
    telling = _TELLING.get(crd.role)
    # Only kinds that core uses have templates.
    if telling is None or _has_template(crd.group, crd.kind, kinds):
        return False
    if crd.role == "InfraMachine" and _is_beside_machines(crd, kinds):
        telling = ("spec.providerID",)
    return not any(find_field(version.schema, path) for version in crd.versions for path in telling)


def _is_beside_machines(crd: Crd, kinds: Mapping[tuple[str, str], str]) -> bool:
    """Return whether core refers to another kind in the group, and no pool creates this one.

    Providers keep the machines of a cloud in such kinds, which have a status, but no provider ID.
    """
    if kinds.get((crd.group, crd.kind.removesuffix(_MACHINE))) == _POOL:
        return False
    return any(
        role == crd.role and group == crd.group and _has_template(group, kind, kinds)
        for (group, kind), role in kinds.items()
    )


def _has_template(group: str, kind: str, kinds: Mapping[tuple[str, str], str]) -> bool:
    return (group, f"{kind}Template") in kinds
