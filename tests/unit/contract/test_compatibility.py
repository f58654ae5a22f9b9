from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from capsmith import resources
from capsmith.clusters.processes.tools import build
from capsmith.clusters.processes.tools.build import select_modules
from capsmith.clusters.processes.tools.catalogue import (
    KUBERNETES,
    core_module,
    default_modules,
    kubernetes_module,
    list_all_modules,
    list_modules,
)
from capsmith.contract.compatibility import Compatibility, load_compatibility
from capsmith.contract.model import ReleaseTesting
from capsmith.errors import UnreadableInput
from capsmith.judge.release.targets import Core, list_targets
from tests.releases.modules import find_outdated

GOOD: dict[str, list[dict[str, object]]] = {
    "core": [
        {"release": "v1.9.1", "run": "short", "note": "old"},
        {"release": "v1.10.2", "run": "ci", "kubeadm": True},
        {"release": "v1.11", "run": "source"},
    ],
    "kubernetes": [{"release": "v1.34.4", "run": "nightly"}, {"release": "v1.36.2", "run": "ci"}],
    "certManager": [{"release": "v1.21.1", "run": "source"}],
    "python": [{"release": "3.11", "run": "ci"}],
}


def read(folder: Path, **changes: object) -> Compatibility:
    (folder / "compatibility.yaml").write_text(yaml.safe_dump({**GOOD, **changes}))
    return load_compatibility(folder)


def test_the_default_is_the_newest_that_runs_for_each_change(tmp_path: Path) -> None:
    found = read(tmp_path).core
    assert found.default.series == "v1.10"
    assert [each.release for each in found.executed] == ["v1.9.1", "v1.10.2"]
    assert (found.releases[0].run, found.releases[0].note) == (ReleaseTesting.SHORT, "old")
    assert found.series("v1.10").kubeadm
    with pytest.raises(KeyError):
        found.series("v1.12")


def test_targets_are_the_releases_and_those_of_tests(tmp_path: Path) -> None:
    targets = list_targets(read(tmp_path).core)
    assert targets.known == (Core(1, 9), Core(1, 10), Core(1, 11))
    assert targets.executed == {Core(1, 9), Core(1, 10)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"core": [*reversed(GOOD["core"])]}, "not in order"),
        ({"core": [{"release": "v1.9.1", "run": "short"}]}, "core has no release with"),
        ({"kubernetes": [{"release": "v1.36", "run": "ci"}]}, "name a patch release"),
        ({"python": [{"release": "3.11", "run": "daily"}]}, "daily"),
        ({"python": [{"release": "3.11", "run": "ci", "when": "now"}]}, "unknown keys when"),
        (
            {"kubernetes": [{"release": f"v1.36.{n}", "run": "ci"} for n in (1, 2)]},
            "two releases of one series",
        ),
        ({"go": []}, "unknown keys go"),
    ],
)
def test_broken_tables_are_refused(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(UnreadableInput, match=message):
        read(tmp_path, **changes)


def test_each_release_that_runs_has_its_modules() -> None:
    """Each pins the release of the table, which `./dev releases` writes."""
    table = load_compatibility(resources.schemas())
    releases = {kubernetes_module(each.series): each.release for each in table.kubernetes.executed}
    for each in table.core.executed:
        releases[core_module(each.series)] = each.release
        if each.kubeadm:
            releases[f"kubeadm-{each.series}"] = each.release
    folder = Path(build.__file__).parent
    assert list_modules().keys() == releases.keys()
    assert {file.parent.name for file in folder.glob("*/go.mod")} == releases.keys()
    for name, release in releases.items():
        project = "k8s.io/kubernetes" if name.startswith("k8s") else "sigs.k8s.io/cluster-api"
        assert f"\t{project} {release} // indirect\n" in (folder / name / "go.mod").read_text()


def test_no_module_would_be_written_again() -> None:
    """`./dev releases` changes nothing until the table changes."""
    assert find_outdated() == []


def test_the_tools_of_each_change_are_those_that_ci_runs() -> None:
    table = load_compatibility(resources.schemas())
    chosen = {KUBERNETES, *(core_module(each.series) for each in table.core.executed)}
    assert {*default_modules()} == {*chosen, f"kubeadm-{table.core.default.series}"}
    assert {*list_all_modules()} > {*default_modules()}


@pytest.mark.parametrize(
    "names", [None, ["k8s"], default_modules()], ids=["default", "k8s", "named"]
)
def test_modules_of_a_toolbox_have_the_names_under_which_tools_are_asked_for(
    names: list[str] | None,
) -> None:
    selected = select_modules(names)
    assert list(selected) == (names or default_modules())
    assert selected["k8s"].folder.startswith("k8s-v1.")
