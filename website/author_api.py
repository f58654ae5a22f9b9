"""The pages of the author API: one for each public module.

A page only names its entries: mkdocstrings reads signatures, types and descriptions from the source
of the runtime, which nothing imports.
"""

from __future__ import annotations

import posixpath
from typing import Final

from capsmith.reference.model import make_anchor
from website.author_modules import (
    FOLDER,
    GROUPS,
    RUNTIME,
    TESTING,
    Module,
    author_modules,
    shared_names,
)

INDEX: Final = f"{FOLDER}README.md"
SUPPORT: Final = {
    f"{TESTING}.kubernetes": ("fake_client", "fake_workload_client"),
    f"{TESTING}.limits": ("set_limits",),
    f"{TESTING}.faults": ("Faults", "inject_faults"),
}
"""Names for tests that are the same for all provider types."""

_ERROR: Final = "Error"
_DERIVED: Final = frozenset(("Reconciler", "Class", "Argument"))
"""Tables of classes that the runtime creates, or from which authors derive theirs."""
_CREATED_BY_RUNTIME: Final = frozenset(
    (
        "AddressRanges",
        "AdmissionObject",
        "AlreadyExistsError",
        "ApiError",
        "BootstrapData",
        "ClaimedAddress",
        "Changes",
        "Cluster",
        "ConflictError",
        "ControlPlaneMachine",
        "ControlPlaneMember",
        "Credentials",
        "DecodingError",
        "Events",
        "ForbiddenError",
        "Holder",
        "InfraClusterView",
        "InfraMachineView",
        "InvalidRequestError",
        "KubeClient",
        "KubernetesClient",
        "KubernetesError",
        "KubernetesReader",
        "Machine",
        "MachineObjects",
        "MachinePool",
        "NotAvailableError",
        "NotDeclaredError",
        "NotFoundError",
        "Owner",
        "Pool",
        "ReportedChange",
        "SessionFactory",
        "Template",
        "TopologyCluster",
        "Variables",
        "Workload",
        "WorkloadObjects",
    )
)
"""Such classes in the other tables."""

_MODULES: Final = frozenset((f"{RUNTIME}.bootstrap.sentinel",))
"""Names of modules, whose members are names of their own."""


def author_api_pages() -> dict[str, str]:
    """Return the pages as Markdown, by their path in the site."""
    modules = author_modules()
    shared = shared_names(modules)
    pages = {INDEX: _index(modules)}
    pages |= {each.page: _page(each, shared) for each in modules}
    pages[f"{FOLDER}shared.md"] = _shared_page(shared)
    pages[f"{FOLDER}testing.md"] = _testing_page(shared)
    return pages


def _index(modules: list[Module]) -> str:
    tests = {each.path: each for each in modules}
    rows = [
        f"| {each.title} | {_link(each)} | {_link(tests[each.tests])} |\n"
        for each in modules
        if each.tests in tests
    ]
    return (
        "# Author API by module\n\nSignatures, types, defaults and meaning of all names that the"
        " code of a provider may import.  [The API for authors](../../author-api.md) explains"
        " them, with examples.\n\n"
        f"| For | Module | Its tests |\n|---|---|---|\n{''.join(rows)}\n"
        "[Shared names](shared.md) are in several modules: import them from the one of your"
        f" provider type.  [`{TESTING}`](testing.md) is for the tests of all provider types.\n"
    )


def _link(module: Module) -> str:
    return f"[`{module.path}`]({posixpath.basename(module.page)})"


def _page(module: Module, shared: dict[str, str]) -> str:
    explained = "../../author-api.md#" + make_anchor(f"{module.title}: {module.path}")
    parts = [f"# {module.path}\n\n{module.title}: [explanations and examples]({explained}).\n"]
    if module.shared:
        links = ", ".join(f"[`{name}`][{shared[name]}]" for name in sorted(module.shared))
        parts.append(f"\nAlso in this module: {links}.\n")
    for group, names in module.groups.items():
        if names:
            parts.append(f"\n## {GROUPS[group]}\n")
        parts += [_entry(module.entries()[name], group in _DERIVED) for name in names]
    return "".join(parts)


def _shared_page(shared: dict[str, str]) -> str:
    names = [entry for entry in shared.values() if not entry.startswith(TESTING)]
    errors = [entry for entry in names if entry.endswith(_ERROR)]
    others = [entry for entry in names if not entry.endswith(_ERROR)]
    return "".join(
        (
            "# Shared names\n\nImport them from the module of your provider type, such as"
            f" `{RUNTIME}.infrastructure`.\n\n## Classes\n",
            *(_entry(name) for name in others),
            "\n## Errors\n",
            *(_entry(name) for name in errors),
        )
    )


def _testing_page(shared: dict[str, str]) -> str:
    builders = [entry for entry in shared.values() if entry.startswith(TESTING)]
    parts = [f"# {TESTING}\n\nWhat the tests of all provider types use.\n"]
    parts.append(
        "\n## Builders\n\nImport them from the module of your provider type, such as"
        f" `{TESTING}.infrastructure`.\n"
    )
    parts += [_entry(name) for name in builders]
    for module, names in SUPPORT.items():
        parts.append(f"\n## `{module}`\n")
        parts += [_entry(f"{module}.{name}") for name in names]
    return "".join(parts)


def _entry(path: str, is_derived: bool = False) -> str:
    """Return the instruction to mkdocstrings to describe a name."""
    name = path.rpartition(".")[2]
    options = ["show_bases: true"] if name.endswith(_ERROR) else []
    if is_derived or name in _CREATED_BY_RUNTIME:
        options.append("merge_init_into_class: false")
    if path in _MODULES:
        options.append("members: false")
    lines = [f"\n::: {path}\n", *(["    options:\n"] if options else [])]
    return "".join([*lines, *(f"      {each}\n" for each in options)])
