"""provider/hooks.py and the permissions of runtime extensions and add-ons."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import yaml

from capsmith.commands.load import load
from capsmith.provider.hooks import list_author_classes, list_author_names
from capsmith.provider.model import Component, Provider
from capsmith.provider_yaml.model import HookName as HookName
from tests.unit.provider.permissions import (
    aggregate_permissions,
    manager_permissions,
    namespace_permissions,
)

BASE = {
    "capsmith": 1,
    "name": "acme",
    "repository": "https://github.com/acme/cluster-api-provider-acme",
    "contracts": ["v1beta2"],
    "releases": {"v0.1": "v1beta2"},
}
EXTENSION = Path(__file__).parents[3] / "runtime/src/capsmith_runtime/extension"


def resolved(folder: Path, **sections: object) -> Provider:
    path = folder / "provider.yaml"
    path.write_text(yaml.safe_dump({**BASE, **sections}))
    loaded = load(path)
    assert loaded.provider is not None, loaded.findings
    return loaded.provider


def extension(folder: Path, *hooks: object) -> Component:
    made = resolved(folder, runtimeExtension={"hooks": list(hooks)})
    component = made.component("runtime-extension")
    assert component is not None
    return component


def test_names_follow_from_the_hook(tmp_path: Path) -> None:
    """Proves: RX-04, RX-08."""
    component = extension(tmp_path, "GeneratePatches")
    (hook,) = component.hooks

    assert (hook.name, hook.method, hook.module) == (
        "generate-patches",
        "generate_patches",
        "topology",
    )
    assert (hook.timeout_seconds, hook.ignore_failures, hook.since) == (10, False, "")
    assert (component.label, component.components_file) == (
        "runtime-extension-acme",
        "runtime-extension-components.yaml",
    )
    assert component.resources == ()


def test_a_hook_can_be_otherwise(tmp_path: Path) -> None:
    given = {
        "hook": "UpdateMachine",
        "name": "slowly",
        "timeoutSeconds": 30,
        "failurePolicy": "Ignore",
    }
    (hook,) = extension(tmp_path, given).hooks

    assert (hook.name, hook.timeout_seconds, hook.ignore_failures) == ("slowly", 30, True)
    assert hook.since == "v1.12"


def test_the_runtime_has_all_that_the_hooks_name(tmp_path: Path) -> None:
    """Generated code names classes and codecs of the runtime: they have to exist."""
    component = extension(tmp_path, *get_args(HookName))
    classes = list_author_classes(component)
    everything = {name for names in classes.values() for name in names}

    for module, names in classes.items():
        text = (EXTENSION / f"{module}.py").read_text()
        for name in names:
            assert re.search(rf"^class {name}\b", text, re.MULTILINE), f"{module}: {name}"
    for hook in component.hooks:
        text = (EXTENSION / f"{hook.module}.py").read_text()
        assert re.search(rf"^{hook.constant}: Final = ", text, re.MULTILINE), hook.constant
        named = set(re.findall(r"[A-Z]\w+", f"{hook.request} {hook.answer}")) - {"Sequence"}
        assert named <= everything
    assert "RuntimeExtension" in list_author_names(component)


def test_authors_see_only_what_their_hooks_need(tmp_path: Path) -> None:
    names = list_author_names(extension(tmp_path, "DiscoverVariables"))

    assert "VariableDefinition" in names
    assert "RetryAfter" not in names
    assert names == sorted(names)


def test_an_extension_may_register_itself_and_review_access_to_metrics(tmp_path: Path) -> None:
    """Proves: RX-09."""
    made = resolved(tmp_path, runtimeExtension={"hooks": ["GeneratePatches"]})
    (component,) = made.components
    found = {
        permission.resources: permission for permission in manager_permissions(made, component)
    }

    reviews = {("tokenreviews",), ("subjectaccessreviews",)}
    assert set(found) == {("extensionconfigs",), ("clusterroles",)} | reviews
    assert {found[each].verbs for each in reviews} == {("create",)}
    assert found["extensionconfigs",].names == ("acme",)
    assert set(found["extensionconfigs",].verbs) == {"create", "delete", "patch"}
    assert found["clusterroles",].names == ("acme-runtime-extension-system-manager-role",)
    assert found["clusterroles",].verbs == ("get",)
    assert namespace_permissions(made, component) == ()
    assert aggregate_permissions(component) == ()


def test_add_ons_read_clusters_and_their_kubeconfigs(tmp_path: Path) -> None:
    """Proves: RB-07, AD-01."""
    made = resolved(tmp_path, addon={"AcmeAddon": {"implements": "Addon"}})
    (component,) = made.components
    found = {
        (group, resource): set(permission.verbs)
        for permission in manager_permissions(made, component)
        for group in permission.groups
        for resource in permission.resources
    }

    assert found["cluster.x-k8s.io", "clusters"] == {"get", "list", "watch"}
    assert found["", "secrets"] == {"get", "list", "watch"}
    assert "create" not in found["addons.cluster.x-k8s.io", "acmeaddons"]
    assert ("cluster.x-k8s.io", "machines") not in found
    assert aggregate_permissions(component) == ()
