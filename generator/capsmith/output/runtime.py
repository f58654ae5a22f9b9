"""The runtime library in a provider's repository: its slices and their requirements."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Final, Literal, NamedTuple

from capsmith.output.rbac.model import Declarations
from capsmith.output.slices import list_slices
from capsmith.output.webhooks import has_admission, has_conversion, has_migration
from capsmith.provider.model import Provider, Role
from capsmith.safetext import RelativePath, SafeText
from capsmith.tree import FileTree, GeneratedFile, Owner, digest

PACKAGE: Final = "capsmith_runtime"
DISTRIBUTION: Final = "capsmith-runtime"
FOLDER: Final = f"vendor/{PACKAGE}"
RECORD: Final = f"vendor/{PACKAGE}.json"
"""Path in the repository of the file that records the copy's version, slices and digests."""
SLICES_FILE: Final = "slices.yaml"
PERMISSIONS_FILE: Final = "permissions.yaml"
"""Name of the permissions file. Each folder whose code sends requests has one."""

Mode = Literal["vendored", "package"]


class Library(NamedTuple):
    """The complete runtime library that capsmith ships."""

    version: str
    sources: Mapping[str, str]
    """Content of each file by path in the package. Files are read from disk when first used."""
    requires: tuple[str, ...]
    """Python requirements (PEP 508) of the parts that every provider includes."""
    slices: Mapping[str, Slice]
    permissions: Declarations
    """Permissions that managers need, by library folder."""


class Slice(NamedTuple):
    """A part of the library that is included only in providers that need it."""

    needs: tuple[str, ...] = ()
    """Names of the other slices that this slice imports."""
    requires: tuple[str, ...] = ()
    """Python requirements (PEP 508) that the slice adds."""
    modules: tuple[str, ...] = ()
    """Modules outside the slice's folders. Each is left out unless this slice, or another one that
    lists it, is included.
    """


class LegacyModule(NamedTuple):
    """A module that capsmith 0.1 generated in ``_generated``, and its replacements."""

    module: RelativePath
    """Path to the module without its suffix, such as ``extension/topology``."""
    libraries: tuple[SafeText, ...]
    """Library modules that now define the module's names."""


class Runtime(NamedTuple):
    """The part of the runtime library that a provider's repository uses."""

    mode: Mode
    version: str
    slices: tuple[str, ...]
    """Sorted names of the slices."""
    requirements: tuple[str, ...]
    """Python requirements of the slices or, in package mode, the requirement for the library
    itself."""
    permissions: Declarations
    """Permissions that managers need, by library folder."""
    legacy: tuple[LegacyModule, ...] = ()
    """Modules that keep capsmith 0.1's import paths working."""

    @property
    def series(self) -> SafeText:
        """Return the ``major.minor`` version of the library that generated code requires."""
        return SafeText(self.version.rpartition(".")[0])

    @property
    def vendored(self) -> bool:
        """Return whether the repository contains a copy of the library."""
        return self.mode == "vendored"


def select_runtime(provider: Provider, library: Library, legacy_imports: bool = False) -> Runtime:
    """Return the slices that ``provider`` needs, with their requirements.

    ``legacy_imports`` adds modules that keep capsmith 0.1's import paths working.
    """
    used = [*_slices(provider)]
    if legacy_imports and "infrastructure" in used:
        used.append("machine_pool_api")
    slices = tuple(sorted(_closure(used, library.slices)))
    requirements: tuple[str, ...]
    if provider.runtime == "package":
        requirements = (f"{DISTRIBUTION}>={library.version},<{_next_series(library.version)}",)
    else:
        wanted = [*library.requires]
        for name in slices:
            wanted += library.slices[name].requires
        requirements = tuple(sorted(set(wanted)))
    legacy = list_legacy_modules(slices) if legacy_imports else ()
    return Runtime(
        provider.runtime, library.version, slices, requirements, library.permissions, legacy
    )


def build_vendored_files(runtime: Runtime, library: Library) -> FileTree:
    """Return the vendored copy's files and its record; empty in package mode."""
    if not runtime.vendored:
        return FileTree()
    carried = {path for path in library.sources if _is_carried(path, runtime, library.slices)}
    files = [
        GeneratedFile(
            RelativePath(f"{FOLDER}/{path}"), _text(path, library, carried), Owner.GENERATED
        )
        for path in library.sources
        if path in carried
    ]
    record = GeneratedFile(RelativePath(RECORD), _record(runtime, files), Owner.GENERATED)
    return FileTree.of([*files, record])


def _record(runtime: Runtime, files: Sequence[GeneratedFile]) -> str:
    content = {
        "version": runtime.version,
        "slices": list(runtime.slices),
        "files": {file.path: file.digest for file in sorted(files, key=lambda file: file.path)},
    }
    return json.dumps(content, indent=2) + "\n"


def _text(path: str, library: Library, carried: Set[str]) -> str:
    """Return a file as vendored: its ``__init__.py`` exports only the slices in ``carried``."""
    text = library.sources[path]
    if not path.endswith("/__init__.py"):
        return text
    for found in _IMPORT.finditer(text):
        module = found["module"].replace(".", "/")
        if carried.isdisjoint((f"{module}.py", f"{module}/__init__.py")):
            text = text.replace(found[0], "")
            # A name left in `__all__` without its import would make `import *` fail.
            for name in _NAME.findall(found["names"]):
                text = text.replace(f'    "{name}",\n', "")
    return text


_IMPORT: Final = re.compile(
    rf"^from {PACKAGE}\.(?P<module>[\w.]+) import (?P<names>\([^)]*\)|.*)\n", re.MULTILINE
)
_NAME: Final = re.compile(r"\w+")


def is_vendored(path: str) -> bool:
    """Return whether a path in a repository belongs to the vendored copy of the library."""
    return path == RECORD or path.startswith(f"{FOLDER}/")


def remove_vendored(tree: FileTree) -> FileTree:
    """Return the tree without the vendored copy of the library."""
    return FileTree.of([file for file in tree if not is_vendored(file.path)])


def parse_record(record: str) -> dict[str, str]:
    """Return the digests in a vendored copy's record, by path, including the record's own.

    Raises ValueError if ``record`` is not a valid record.
    """
    content = json.loads(record)
    files = content.get("files") if isinstance(content, dict) else None
    if not isinstance(files, dict):
        raise ValueError("no record of a vendored runtime")
    for path, value in files.items():
        if not path.startswith(f"{FOLDER}/") or not isinstance(value, str):
            raise ValueError(f"{path} is not in {FOLDER}")
        # Raises ValueError for a path outside the repository, because the record may come from
        # anywhere.
        RelativePath(path)
    return {**files, RECORD: digest(record)}


def _slices(provider: Provider) -> Iterator[str]:
    if any(contract.version == "v1beta1" for contract in provider.contracts):
        yield "v1beta1"
    for component in provider.components:
        yield from list_slices(component)
        if component.has_workload_client:
            yield "workload"
        if component.role(Role.INFRA_MACHINE_POOL):
            yield "machine_pool"
        if "addressesFromPools" in component.features:
            yield "machine_addresses"
        if "capacity" in component.features:
            yield "machine_template"
    if has_conversion(provider):
        yield "conversion"
    if has_admission(provider):
        yield "admission"
    if has_migration(provider):
        yield "migration"
    if provider.manager.has_settings:
        yield "flags"
    if provider.manager.health_checks:
        yield "health"


def _closure(names: Sequence[str], slices: Mapping[str, Slice]) -> set[str]:
    found: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += slices[name].needs
    return found


def _is_carried(path: str, runtime: Runtime, slices: Mapping[str, Slice]) -> bool:
    """Return whether a repository needs a file of the library.

    Modules of the library's ``legacy`` folder are named after the slice whose old names they
    contain.
    """
    if path == SLICES_FILE or path.endswith(f"/{PERMISSIONS_FILE}"):
        return False  # the generator alone reads them, in its own copy
    folders = path.split("/")[:-1]
    if folders[:1] == ["legacy"]:
        if not runtime.legacy:
            return False
        folders.append(path.rpartition("/")[2].removesuffix(".py"))
    # A module may belong to several slices, any of which is sufficient to need it.
    owners = {name for name, each in slices.items() if path in each.modules}
    carried = set(runtime.slices)
    return set(folders) & set(slices) <= carried and (not owners or not owners.isdisjoint(carried))


def list_legacy_modules(slices: Sequence[str]) -> tuple[LegacyModule, ...]:
    """Return capsmith 0.1 modules that the author's code for these slices may still import."""
    common = {
        "provider": tuple(sorted(f"legacy.{name}" for name in ("common", *slices) if name in _TOP)),
        "testing": ("testing.core", *_builders("infrastructure", slices)),
    }
    modules = common | {
        module: (library,)
        for name, found in _LEGACY.items()
        if name in slices
        for module, library in found.items()
    }
    own = (SafeText(".extension_api"),) if "extension" in slices else ()
    return tuple(
        LegacyModule(
            RelativePath(module),
            (
                *(SafeText(f"{PACKAGE}.{each}") for each in libraries),
                *(own if module == "provider" else ()),
            ),
        )
        for module, libraries in sorted(modules.items())
    )


def _builders(name: str, slices: Sequence[str]) -> tuple[str, ...]:
    return (f"testing.{name}",) if name in slices else ()


_TOP: Final = ("addon", "bootstrap", "common", "controlplane", "infrastructure", "ipam")
"""Modules whose names the author's package had at its top level in capsmith 0.1."""
_LEGACY: Final[Mapping[str, Mapping[str, str]]] = {
    "infrastructure": {"machine_pool_testing": "testing.infrastructure"},
    "bootstrap": {
        "bootstrap_testing": "testing.bootstrap",
        "cloud_config": "bootstrap.cloud_config",
        "sentinel": "bootstrap.sentinel",
    },
    "controlplane": {
        "control_plane_testing": "testing.controlplane",
        "managed_control_plane_testing": "testing.controlplane",
    },
    "ipam": {"address_ranges": "ipam.address_ranges", "ipam_testing": "testing.ipam"},
    "addon": {"addon_testing": "testing.addon"},
    "extension": {
        "extension/__init__": "extension",
        "extension/answers": "extension.responses",
        "extension/in_place": "extension.in_place",
        "extension/lifecycle": "extension.lifecycle",
        "extension/patches": "extension.patches",
        "extension/testing": "testing.extension",
        "extension/topology": "extension.topology",
        "extension/variables": "extension.variables",
    },
}


def _next_series(version: str) -> str:
    major, minor, _ = version.split(".")
    return f"{major}.{int(minor) + 1}"
