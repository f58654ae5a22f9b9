"""The runtime library of a repository: one entry in the lock, replaced or forked as a whole."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from capsmith.commands.build import load_runtime_library
from capsmith.output.runtime import FOLDER, RECORD
from tests.regenerate.conftest import Provider, Said, run
from tests.repositories import import_path

MODULE = f"{FOLDER}/kube/clock.py"
LATER = "0.2.1"
COMMANDS = ("plan", "build", "preconditions", "update", "up_to_date", "recorded_output", "doctor")
SWITCHED = {"provider.yaml", "pyproject.toml", "Dockerfile", ".dockerignore", ".gitattributes"}
GUIDE = "CONTRIBUTING.md"
"""It says where the runtime is."""


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a later release of capsmith, whose runtime has one more line."""
    now = load_runtime_library()
    path = MODULE.removeprefix(f"{FOLDER}/")
    sources = {**now.sources, path: now.sources[path] + "# later\n"}
    released = now._replace(version=LATER, sources=sources)
    for name in COMMANDS:
        importlib.import_module(f"capsmith.commands.{name}")  # the CLI imports them late
    for name, module in list(sys.modules.items()):
        if not name.startswith("capsmith."):
            continue
        if getattr(module, "__version__", None) == now.version:
            monkeypatch.setattr(module, "__version__", LATER)
        if getattr(module, "load_runtime_library", None) is load_runtime_library:
            monkeypatch.setattr(module, "load_runtime_library", lambda: released)


def runtime_entry(provider: Provider) -> dict[str, object]:
    lock = yaml.safe_load(provider.path(".capsmith/lock.yaml").read_text())
    return dict(lock["runtime"])


def doctor(provider: Provider) -> Said:
    return run("doctor", str(provider.folder), "--format", "json")


def fork(provider: Provider) -> None:
    assert provider.update("--mine", FOLDER).code == 0
    provider.append(MODULE, "# forked\n")


def vendored(provider: Provider) -> dict[str, bytes]:
    return {path: state[0] for path, state in provider.tree().items() if path.startswith("vendor/")}


def test_the_lock_has_one_entry(provider: Provider) -> None:
    lock = yaml.safe_load(provider.path(".capsmith/lock.yaml").read_text())
    record = json.loads(provider.path(RECORD).read_text())

    assert set(lock["runtime"]) == {"version", "mode", "slices", "digest"}
    assert lock["runtime"]["slices"] == record["slices"] == ["identity", "infrastructure"]
    assert lock["runtime"]["version"] == record["version"]
    assert not any(path.startswith("vendor/") for path in lock["files"])
    assert set(record["files"]) == set(vendored(provider)) - {RECORD}


def test_a_feature_brings_its_slice_and_takes_it_away(provider: Provider) -> None:
    """What author code imports for a feature is there with the update that adds the feature."""
    before = provider.tree()
    exports = f"{FOLDER}/infrastructure/__init__.py"
    features = "    features: {addressesFromPools: true, capacity: true}\n"
    pool = "  AcmeMachinePool: {implements: InfraMachinePool}\n"
    assert "InfraMachinePoolReconciler" not in provider.path(exports).read_text()

    provider.edit(
        "provider.yaml",
        "    implements: InfraMachine\n",
        "    implements: InfraMachine\n" + features,
    )
    provider.edit(
        "provider.yaml", "credentials: AcmeIdentity\n", pool + "credentials: AcmeIdentity\n"
    )
    said = provider.update()

    assert said.code == 0
    assert said.report["runtime"]["outcome"] == "updated"
    slices = {"machine_addresses", "machine_pool", "machine_pool_api", "machine_template"}
    assert slices < set(json.loads(provider.path(RECORD).read_text())["slices"])
    for name in (
        "contract/ipam.py",
        "contract/machine_pool.py",
        "infrastructure/machine_pool_api.py",
    ):
        assert provider.path(f"{FOLDER}/{name}").is_file()
    assert "InfraMachinePoolReconciler" in provider.path(exports).read_text()

    provider.edit("provider.yaml", features, "")
    provider.edit("provider.yaml", pool, "")
    assert provider.update().code == 0
    after = vendored(provider)
    assert after == {path: state[0] for path, state in before.items() if path.startswith("vendor/")}


def test_a_later_version_is_one_line(provider: Provider, later: None) -> None:
    before = runtime_entry(provider)
    output = run("update", str(provider.folder)).text
    lines = [line for line in output.splitlines() if "runtime" in line]

    assert len(lines) == 1
    assert lines[0].startswith(f"runtime: {before['version']} -> {LATER}")
    assert runtime_entry(provider)["version"] == LATER
    assert provider.path(MODULE).read_text().endswith("# later\n")
    assert provider.update("--check").code == 0


def test_an_edited_file_is_refused_by_name(provider: Provider) -> None:
    generated = provider.path(MODULE).read_bytes()
    provider.append(MODULE, "# edited\n")
    before = provider.tree()

    said = provider.update()

    assert (said.code, said.files("refused")) == (1, {MODULE})
    assert provider.tree() == before
    assert provider.update("--force").code == 0
    assert provider.path(MODULE).read_bytes() == generated
    assert provider.update("--check").code == 0


def test_a_deleted_file_is_generated_again(provider: Provider) -> None:
    before = provider.tree()
    provider.path(MODULE).unlink()

    assert provider.update("--check").code == 1
    assert provider.update().code == 0
    assert provider.tree() == before


def test_a_fork_is_left_alone_and_reported(provider: Provider) -> None:
    fork(provider)
    before = vendored(provider)

    said = provider.update()

    assert (said.code, said.report["runtime"]["outcome"]) == (0, "kept")
    assert vendored(provider) == before
    assert runtime_entry(provider)["mine"] is True
    assert doctor(provider).report["facts"]["runtime"]["fork"] is True
    assert "a fork that capsmith leaves alone" in run("doctor", str(provider.folder)).text


def test_a_fork_stays_with_a_later_version(provider: Provider, later: None) -> None:
    fork(provider)
    before, entry = vendored(provider), runtime_entry(provider)

    assert provider.update().code == 0

    assert vendored(provider) == before
    assert runtime_entry(provider) == entry
    assert "runtime-fork" in doctor(provider).ids


def test_a_fork_is_handed_back(provider: Provider) -> None:
    generated = vendored(provider)
    fork(provider)
    before = provider.tree()

    said = provider.update("--not-mine", FOLDER)

    assert (said.code, said.files("refused")) == (1, {MODULE})
    assert provider.tree() == before
    assert provider.update("--not-mine", FOLDER, "--force").code == 0
    assert vendored(provider) == generated
    assert "mine" not in runtime_entry(provider)
    assert provider.update("--check").code == 0


def test_other_modes_change_merged_files_only(provider: Provider) -> None:
    before = provider.tree()
    provider.append("provider.yaml", "runtime: package\n")

    assert provider.update().code == 0

    package = provider.tree()
    changed = {path for path in before | package if before.get(path) != package.get(path)}
    outside = {path for path in changed if not path.startswith(("vendor/", ".capsmith/"))}
    assert outside <= SWITCHED | {GUIDE}
    assert outside >= {"provider.yaml", "pyproject.toml", "Dockerfile"}
    assert vendored(provider) == {}
    assert runtime_entry(provider)["mode"] == "package"
    assert "capsmith-runtime>=" in provider.path("pyproject.toml").read_text()

    provider.path("provider.yaml").write_bytes(before["provider.yaml"][0])
    assert provider.update().code == 0
    assert provider.tree() == before


def test_one_command_changes_over_and_back(provider: Provider) -> None:
    before = provider.tree()
    provider.append("provider.yaml", "# the last line\n")
    spec = provider.path("provider.yaml").read_text()

    said = provider.update("--runtime", "package")

    assert said.code == 0, said.text
    assert said.report["runtime"]["mode"] == "package"
    assert "provider.yaml" in said.files("updated")
    assert vendored(provider) == {}
    now = provider.path("provider.yaml").read_text()
    assert now.replace("runtime: package\n", "", 1) == spec
    package = provider.tree()
    provider.path("provider.yaml").write_text(f"{spec}runtime: package\n")
    assert provider.update().code == 0
    by_hand = provider.tree()
    records = {"provider.yaml", ".capsmith/lock.yaml"}  # the line is at another place
    assert {path for path in package if package[path] != by_hand.get(path)} <= records
    assert package.keys() == by_hand.keys()

    assert provider.update("--runtime", "package").files("updated") == set()
    assert provider.update("--runtime", "vendored").code == 0
    assert "\nruntime: vendored\n" in provider.path("provider.yaml").read_text()
    assert vendored(provider) == {
        path: state[0] for path, state in before.items() if path.startswith("vendor/")
    }
    assert provider.update("--check").code == 0


def test_a_preview_of_another_runtime_writes_nothing(provider: Provider) -> None:
    before = provider.tree()

    shown = run("update", "--runtime", "package", "--diff", str(provider.folder))

    assert shown.code == 0
    assert "+runtime: package" in shown.text
    assert "capsmith-runtime>=" in shown.text
    assert provider.tree() == before


def test_an_edited_copy_is_not_lost_with_another_runtime(provider: Provider) -> None:
    provider.append(MODULE, "# edited\n")
    before = provider.tree()

    said = provider.update("--runtime", "package")

    assert (said.code, said.files("refused")) == (1, {MODULE})
    assert provider.tree() == before


def test_a_fork_is_not_lost_with_another_runtime(provider: Provider) -> None:
    fork(provider)
    before = provider.tree()

    said = provider.update("--runtime", "package")

    assert (said.code, said.ids) == (1, {"runtime-fork"})
    assert provider.tree() == before
    assert provider.update("--not-mine", FOLDER, "--force").code == 0
    assert provider.update("--runtime", "package").code == 0
    assert vendored(provider) == {}


def test_a_lock_of_the_other_runtime_is_reported(provider: Provider) -> None:
    provider.path("requirements.lock").write_text("lightkube==1.0 --hash=sha256:0\n")

    said = provider.update("--runtime", "package")

    assert said.code == 0
    lock = str(provider.path("requirements.lock"))
    assert said.findings[lock] == "python-lock-behind"
    provider.path("requirements.lock").write_text("capsmith-runtime==0.2.0 --hash=sha256:0\n")
    assert provider.update("--runtime", "package").ids == set()
    assert "python-lock-behind" in provider.update("--runtime", "vendored").ids


def test_a_text_that_cannot_be_edited_stays(provider: Provider) -> None:
    provider.append("provider.yaml", "runtime: |-\n  vendored\n")
    before = provider.tree()

    said = provider.update("--runtime", "package")

    (finding,) = said.report["findings"]
    assert (said.code, finding["id"]) == (1, "spec-not-editable")
    assert "`runtime: package`" in finding["hint"]
    assert provider.tree() == before


@pytest.mark.parametrize("option", ["--check", "--continue", "--abort"])
def test_another_runtime_is_for_updates_only(provider: Provider, option: str) -> None:
    said = run("update", "--runtime", "package", option, str(provider.folder))

    assert said.code == 2
    assert "cannot change the runtime" in said.text


def test_one_change_of_provider_yaml_at_a_time(provider: Provider) -> None:
    said = run("update", "--runtime", "package", "--contract", "v1beta2", str(provider.folder))

    assert said.code == 2
    assert "--runtime excludes" in said.text


@pytest.mark.parametrize("damage", ["altered", "missing"])
def test_a_record_that_is_not_the_one_generated_is_an_error(
    provider: Provider, damage: str
) -> None:
    if damage == "missing":
        provider.path(RECORD).unlink()
    else:
        provider.append(RECORD, "\n")
    before = provider.tree()

    said = provider.update()

    (finding,) = said.report["findings"]
    assert (said.code, finding["id"]) == (2, "runtime-record-altered")
    assert finding["hint"]
    assert provider.tree() == before


@pytest.mark.slow
def test_an_ejected_repository_works_without_capsmith(provider: Provider) -> None:
    before = vendored(provider)
    assert run("eject", str(provider.folder)).code == 0
    assert {path: provider.path(path).read_bytes() for path in before if path != RECORD} == {
        path: content for path, content in before.items() if path != RECORD
    }
    blocker = provider.folder.parent / "blocker"
    (blocker / "capsmith").mkdir(parents=True)
    (blocker / "capsmith/__init__.py").write_text("raise ImportError('no capsmith here')\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=provider.folder,
        env={
            "PATH": os.environ.get("PATH", os.defpath),
            "PYTHONPATH": os.pathsep.join([str(blocker), import_path(provider.folder)]),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        timeout=3600,
    )
    assert done.returncode == 0, done.stdout[-20_000:]
    assert Path(provider.folder / FOLDER).is_dir()
