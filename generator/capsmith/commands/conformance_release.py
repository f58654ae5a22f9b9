"""Read the releases for a conformance run: kinds to check, their roles, and manager commands."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from capsmith.clusters.processes.component import (
    ProviderRelease,
    ReleaseComponent,
    read_newest_version,
)
from capsmith.clusters.processes.kube import JSON
from capsmith.commands.load import load_contracts
from capsmith.errors import InvalidOption, UnreadableInput
from capsmith.judge.release.settings import parse_role
from capsmith.judge.running.model import Timing
from capsmith.judge.running.objects import MACHINE_POOL
from capsmith.manifests.bundle import NONE, Bundle, find_roles
from capsmith.manifests.crds import Crd, find_field
from capsmith.manifests.parse import Manifest, parse_manifests, text_of
from capsmith.workspace.reading import read_document

_LARGEST = 1 << 24


class ConformanceRequest(NamedTuple):
    """Command-line options for `capsmith conformance`, before parsing."""

    core: str
    """Release series of core to start for the run, such as ``v1.14``."""
    kubeconfig: Path | None = None
    managers: tuple[str, ...] = ()
    others: tuple[Path, ...] = ()
    simulate: Path | None = None
    env: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    flavor: str = ""
    objects: Path | None = None
    apply: tuple[Path, ...] = ()
    release_version: str = ""
    roles: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    timeout: float = Timing().patience
    quiet: float = Timing().quiet
    logs: Path | None = None
    strict: bool = False


def add_simulation(request: ConformanceRequest, folder: Path) -> ConformanceRequest:
    """Return a request with a release of all that the provider's clusters need beside it.

    Raises CapsmithError if that cannot be built in ``folder``, and InvalidOption if the request has
    a management cluster of its own.
    """
    if request.simulate is None:
        return request
    if request.kubeconfig is not None:
        raise InvalidOption("--simulate and --kubeconfig exclude each other.")
    # Imported only if used, because it needs packages of the extra.
    from capsmith.clusters.lab.simulated.release import build_release

    found = build_release(request.simulate, folder / "simulated")
    managers = [f"{type}={command}" for type, command in found.commands.items()]
    return request._replace(
        others=(*request.others, found.folder), managers=(*request.managers, *managers)
    )


_NO_OBJECTS = (
    "Write the objects for this option into it, such as hosts, or an identity with its Secret; or"
    " correct the path."
)


def read_objects(path: Path) -> list[JSON]:
    """Return the Kubernetes objects in a YAML file of the user.

    Raises UnreadableInput for a file that does not exist, for invalid YAML, and for objects without
    API version, kind or name.
    """
    manifests = read_manifests(path, absent=_NO_OBJECTS)
    for each in manifests:
        if not (text_of(each.document, "apiVersion") and each.kind and each.name):
            raise UnreadableInput(
                "manifest-object",
                "an object without apiVersion, kind or metadata.name",
                file=str(path),
                line=each.line,
                hint="Correct the file.",
            )
    return [dict(manifest.document) for manifest in manifests]


def read_prerequisites(request: ConformanceRequest) -> list[JSON]:
    """Return the objects of ``--apply``.  Raises UnreadableInput if a file cannot be read."""
    return [document for path in request.apply for document in read_objects(path)]


def find_namespace(obj: JSON) -> str:
    """Return the namespace of an object; empty if it has none."""
    return text_of(obj, "metadata", "namespace")


def read_manifests(path: Path, absent: str = "Check the path.") -> list[Manifest]:
    """Return the YAML documents in a file as manifests.

    Raises UnreadableInput for invalid YAML, and with the hint ``absent`` if there is no such file.
    """
    text = read_document(path, _LARGEST, absent=absent)
    manifests, findings = parse_manifests(text, str(path))
    if findings:
        first = findings[0]
        raise UnreadableInput(
            first.id,
            first.message,
            file=str(path),
            line=first.location.line,
            hint="Correct the file.",
        )
    return list(manifests)


CHECKED_TYPES = ("infrastructure", "bootstrap", "control-plane", "ipam")
"""Provider types that have conformance checks."""
_PROVIDER_IDS = "spec.providerIDList"
_OTHER_TYPES = ("addon", "core", "runtime-extension")


class CheckedProvider(NamedTuple):
    """A release to check, read from its files before any process starts."""

    release: ProviderRelease
    others: tuple[ProviderRelease, ...]
    """Other providers' releases that clusters need. They are not checked."""
    components: tuple[ReleaseComponent, ...]
    """Components to check, infrastructure first."""
    roles: dict[str, str]
    """Roles of the checked components' kinds, keyed by kind."""
    contracts: dict[tuple[str, str], str]
    """Contract versions, keyed by kind and API version name."""
    commands: dict[str, tuple[str, ...]]
    """Commands that start managers, by provider type, including the other releases' managers."""

    @property
    def name(self) -> str:
        """Return the provider's name in clusterctl."""
        return self.components[0].name

    @property
    def label(self) -> str:
        """Return the checked components' provider labels, separated by commas, for display."""
        return ", ".join(component.label for component in self.components)

    @property
    def releases(self) -> tuple[ProviderRelease, ...]:
        """Return all releases to install, starting with the release to check."""
        return (self.release, *self.others)

    @property
    def started(self) -> list[ReleaseComponent]:
        """Return the components, from all releases, whose managers this run starts."""
        found = [each for release in self.releases for each in release.components]
        return [each for each in found if each.type in self.commands]

    def contract(self, kind: str, api_version: str) -> str:
        """Return the contract version that the labels on a kind's CRD assign to an API version.

        Raises UnreadableInput if no contract label lists the API version.
        """
        key = (kind, api_version.rpartition("/")[2])
        if key not in self.contracts:
            raise UnreadableInput(
                "conformance-contract",
                f"no contract label of {key[0]} names version {key[1]}",
                file=str(self.release.folder),
                hint="Run capsmith verify first.",
            )
        return self.contracts[key]


def read_provider(folder: Path, request: ConformanceRequest) -> CheckedProvider:
    """Read the release in a folder.

    Raises UnreadableInput if it cannot be read or no component has checks, and InvalidOption for an
    option that has no effect.
    """
    version = request.release_version or read_newest_version(folder)
    release = ProviderRelease(folder, version)
    others = tuple(ProviderRelease(each, read_newest_version(each)) for each in request.others)
    commands = _commands(request.managers, (release, *others))
    components = _components(release, commands)
    for part in (each for found in (release, *others) for each in found.components):
        _refuse_unusable(part)
    manifests = [each for part in components for each in read_manifests(folder / part.file)]
    known = sorted({role for contract in load_contracts() for role in contract.types})
    given = dict(parse_role(text, known) for text in request.roles)
    bundle = Bundle(tuple(manifests), given)
    by_name = find_roles(bundle, given)
    contracts = {
        (crd.kind, version): contract.version
        for contract in load_contracts()
        for crd in bundle.crds
        for version in crd.labelled(contract.label)
    }
    roles = {crd.kind: _role(crd, by_name[crd.manifest.name]) for crd in bundle.crds}
    return CheckedProvider(release, others, components, roles, contracts, commands)


def _refuse_unusable(component: ReleaseComponent) -> None:
    """Raise UnreadableInput for a components file that the run could not install."""
    # Also finds files that are too large, links and pipes, before anything reads them whole.
    read_manifests(component.out / component.file)
    _ = component.namespace


def _role(crd: Crd, role: str) -> str:
    """Return the role of a kind; only machine pools list provider IDs, whatever the name."""
    lists_ids = any(find_field(version.schema, _PROVIDER_IDS) for version in crd.versions)
    return MACHINE_POOL if role == NONE and lists_ids else role


def _components(
    release: ProviderRelease, commands: dict[str, tuple[str, ...]]
) -> tuple[ReleaseComponent, ...]:
    """Return the components to check: those with a command, or all if there are no commands."""
    found = [each for each in release.components if each.type in CHECKED_TYPES]
    if not found:
        found = [release.component(CHECKED_TYPES[0])]
    kept = [each for each in found if not commands or each.type in commands]
    if not kept:
        raise InvalidOption("No --manager belongs to a provider in RELEASE.")
    return tuple(kept)


def _commands(
    texts: Sequence[str], releases: Sequence[ProviderRelease]
) -> dict[str, tuple[str, ...]]:
    """Return the commands of managers by type.

    A command without a type applies to all components of the release to check.
    """
    types = [each.type for release in releases for each in release.components]
    repeated = sorted({each for each in types if types.count(each) > 1})
    if repeated:
        raise InvalidOption(f"Several releases have a provider of type {', '.join(repeated)}.")
    commands: dict[str, str] = {}
    general: list[str] = []
    for text in texts:
        type, equals, command = text.partition("=")
        if not equals or type not in (*CHECKED_TYPES, *_OTHER_TYPES):
            general.append(text)
            continue
        if type not in types:
            raise InvalidOption(f"--manager names {type}, which has no components file.")
        if type in commands:
            raise InvalidOption(f"--manager is given more than once for {type}.")
        commands[type] = command
    if len(general) > 1:
        raise InvalidOption("--manager is given more than once without a type.")
    own = [each.type for each in releases[0].components if each.type in CHECKED_TYPES]
    for text in general:
        # A command that names a type takes precedence over the general one.
        commands = dict.fromkeys(own, text) | commands
    return {type: _split(command) for type, command in commands.items()}


def _split(command: str) -> tuple[str, ...]:
    """Return the words of a command, as a shell splits them."""
    try:
        return tuple(shlex.split(command))
    except ValueError as error:
        raise InvalidOption(f"--manager {command}: {error}.") from None
