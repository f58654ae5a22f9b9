"""The YAML of the pages, read by what reads it: capsmith, kubectl, clusterctl and others."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from capsmith import __version__
from capsmith.cli import main
from capsmith.commands.generate import generate
from capsmith.commands.plan import UpdateOptions
from capsmith.manifests.variables import substitute
from tests.golden.expected import expected_folder
from tests.website.blocks import blocks
from tests.website.commands import KUBECTL, check_capsmith
from tests.website.pages import ACME, ROOT, Shown, declared

Mapping = dict[str, Any]
_OVERLAY = "config/overlay/kustomization.yaml"
_TYPES = {
    "AddonProvider": "addon",
    "BootstrapProvider": "bootstrap",
    "ControlPlaneProvider": "control-plane",
    "InfrastructureProvider": "infrastructure",
    "IPAMProvider": "ipam",
    "RuntimeExtensionProvider": "runtime-extension",
}


def merged(base: Any, more: Any) -> Any:
    """Return both; of two mappings the keys of both, else the second."""
    if not (isinstance(base, dict) and isinstance(more, dict)):
        return more
    common = {key: merged(base[key], more[key]) for key in base.keys() & more.keys()}
    return {**base, **more, **common}


def under(path: list[str], value: Any) -> Any:
    """Return a mapping with a value at a path."""
    for key in reversed(path):
        value = {key: value}
    return value


def run(*arguments: str | Path) -> Mapping:
    """Run capsmith, and return its report; it may fail."""
    result = CliRunner().invoke(main, [*map(str, arguments), "--format", "json"])
    report: Mapping = json.loads(result.stdout)
    return report


@pytest.mark.parametrize("shown", declared("provider"), ids=str)
def test_parts_of_provider_yaml(shown: Shown, tmp_path: Path) -> None:
    options = shown.entry["provider"]
    given = under(options.get("under", []), yaml.safe_load(shown.block.text))
    base = ROOT / "examples" / options.get("base", "acme") / "provider.yaml"
    whole = {} if options.get("whole") else yaml.safe_load(base.read_text(encoding="utf-8"))
    whole = merged(merged(whole, options.get("with", {})), given)
    file = tmp_path / "provider.yaml"
    file.write_text(yaml.safe_dump(whole, sort_keys=False), encoding="utf-8")

    report = run("validate", file)

    found = {each["id"] for each in report["findings"]}
    assert (report["exitCode"], found) == (0, set(options.get("findings", [])))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("yaml") / "acme"
    assert generate(ACME, folder).exit_code == 0
    return folder


@pytest.fixture(scope="module")
def release(repository: Path) -> Path:
    return released(repository)


def released(repository: Path) -> Path:
    """Write the assets of a release; return their folder."""
    command = ["make", "release-manifests", "VERSION=v0.1.0", f"KUBECTL={KUBECTL}"]
    done = subprocess.run(
        [*command, f"PYTHON={sys.executable}"], cwd=repository, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return repository / "out"


def read_kustomization(shown: Shown, repository: Path, release: Path) -> None:
    """Build the overlay with it; the options have the rest of the file and what is built."""
    options = shown.entry["with"]
    overlay = repository / _OVERLAY
    former = overlay.read_text(encoding="utf-8")
    whole = merged(yaml.safe_load(former), yaml.safe_load(shown.block.text))
    whole = merged(whole, {key: value for key, value in options.items() if key != "builds"})
    overlay.write_text(yaml.safe_dump(whole), encoding="utf-8")
    try:
        command = [str(KUBECTL), "kustomize", str(overlay.parent)]
        done = subprocess.run(command, capture_output=True, text=True)
    finally:
        overlay.write_text(former, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    built = [each for each in yaml.safe_load_all(done.stdout) if each]
    for kind, labels in options["builds"].items():
        (found,) = (each["metadata"] for each in built if each["kind"] == kind)
        assert labels.items() <= found.get("labels", {}).items()


def read_settings(shown: Shown, repository: Path, release: Path) -> None:
    """Judge a release with it: `capsmith verify` reports what it cannot read."""
    config = repository / ".capsmith-verify.yaml"
    config.write_text(shown.block.text, encoding="utf-8")
    result = CliRunner().invoke(main, ["verify", str(release), "--config", str(config)])
    config.unlink()
    assert result.exit_code in (0, 1), result.output
    assert "verify-config" not in result.output


def read_hooks(shown: Shown, repository: Path, release: Path) -> None:
    """Compare a configuration of pre-commit with the hooks of this repository."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    known = {each["id"]: each for each in hooks}
    (source,) = yaml.safe_load(shown.block.text)["repos"]
    assert source["rev"] == f"v{__version__}"
    for hook in source["hooks"]:
        check_capsmith([*shlex.split(known[hook["id"]]["entry"]), *hook["args"]], complete=True)


def read_workflow(shown: Shown, repository: Path, release: Path) -> None:
    """Compare the first step of a job with the action of this repository; the second uploads."""
    inputs = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
    job = yaml.safe_load(shown.block.text)
    step, upload = job["steps"]
    required = {name for name, each in inputs.items() if each.get("required")}
    assert required <= step["with"].keys() <= inputs.keys()
    assert step["uses"].endswith(f"@v{__version__}")
    assert upload["with"]["sarif_file"] == step["with"]["sarif"]
    assert job["permissions"]["security-events"] == "write"


def read_manifest(shown: Shown, repository: Path, release: Path) -> None:
    """Generate with it and with the blueprint of the page; the other templates are one word."""
    (jinja,) = (block for block in blocks(shown.page.text) if block.language == "jinja")
    folder = repository / "blueprints"
    (folder / "project").mkdir(parents=True)
    (folder / "manifest.yaml").write_text(shown.block.text, encoding="utf-8")
    (folder / "project" / "Makefile.jinja").write_text(jinja.text, encoding="utf-8")
    files = yaml.safe_load(shown.block.text)["files"]
    for row in files:
        (folder / "project" / row["source"]).write_text("text\n", encoding="utf-8")
    out = repository.parent / "with-blueprints"

    report = generate(ACME, out, options=UpdateOptions(blueprints=folder))

    assert report.exit_code == 0, report.findings
    assert "\t$(PYTHON) -m pip_audit\n" in (out / "Makefile").read_text(encoding="utf-8")
    assert (out / ".github" / "CODEOWNERS").is_file()
    assert (out / "docs" / "acme_machine.md").is_file()


def read_clusterctl(shown: Shown, repository: Path, release: Path) -> None:
    """Check what clusterctl requires of an entry; tests/e2e lets clusterctl read it."""
    for entry in yaml.safe_load(shown.block.text)["providers"]:
        assert entry.keys() == {"name", "type", "url"}
        assert f"{_TYPES[entry['type']]}-components.yaml" in entry["url"]


def read_class(shown: Shown, repository: Path, release: Path) -> None:
    """Add it to the ClusterClass of a release, and judge the release."""
    path = release / "clusterclass-acme.yaml"
    former = path.read_text(encoding="utf-8")
    first, *templates = yaml.safe_load_all(former)
    for key, more in yaml.safe_load(shown.block.text)["spec"].items():
        first["spec"][key] += more
    path.write_text(yaml.safe_dump_all([first, *templates]), encoding="utf-8")
    try:
        report = run("verify", release, "--version", "v0.1.0")
    finally:
        path.write_text(former, encoding="utf-8")
    assert (report["exitCode"], report["violations"]) == (0, [])


def read_extension(shown: Shown, repository: Path, release: Path) -> None:
    """Find the names of handler and extension in what the manager registers."""
    folder = expected_folder(shown.page.repository) / "src"
    (wiring,) = folder.glob("*/_generated/wiring/runtime_extension.py")
    text = " ".join(wiring.read_text(encoding="utf-8").split())
    for patch in yaml.safe_load(shown.block.text)["patches"]:
        handler, _, name = patch["external"]["generatePatchesExtension"].partition(".")
        assert f'hook="GeneratePatches", name="{handler}"' in text
        assert f'registration=Registration( name="{name}"' in text


def read_objects(shown: Shown, repository: Path, release: Path) -> None:
    """Add them to a release of the provider `with` more, which judges them by its CRDs."""
    folder = repository.parent / "objects"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    spec = folder / "provider.yaml"
    whole = merged(yaml.safe_load(ACME.read_text("utf-8")), shown.entry.get("with", {}))
    spec.write_text(yaml.safe_dump(whole, sort_keys=False), encoding="utf-8")
    assert generate(spec, folder / "acme").exit_code == 0
    out = released(folder / "acme")
    (out / "cluster-template-page.yaml").write_text(shown.block.text, encoding="utf-8")
    report = run("verify", out, "--version", "v0.1.0")
    assert (report["exitCode"], report["violations"]) == (0, [])


def read_variables(shown: Shown, repository: Path, release: Path) -> None:
    """Replace them in the manifests of a repository as clusterctl does: each has an effect."""
    manifests = expected_folder(shown.entry["in"]).glob("**/config/**/*.yaml")
    texts = [path.read_text(encoding="utf-8") for path in manifests]
    for name, value in yaml.safe_load(shown.block.text).items():
        assert any(substitute(text, {name: value}) != substitute(text) for text in texts), name


_READERS: dict[str, Callable[[Shown, Path, Path], None]] = {
    "class": read_class,
    "clusterctl": read_clusterctl,
    "extension": read_extension,
    "hooks": read_hooks,
    "kustomization": read_kustomization,
    "manifest": read_manifest,
    "objects": read_objects,
    "settings": read_settings,
    "variables": read_variables,
    "workflow": read_workflow,
}


@pytest.mark.parametrize("shown", declared("reader"), ids=str)
def test_other_files(shown: Shown, repository: Path, release: Path) -> None:
    _READERS[shown.entry["reader"]](shown, repository, release)


def test_each_reader_is_used() -> None:
    assert {shown.entry["reader"] for shown in declared("reader")} == _READERS.keys()


def test_merged() -> None:
    assert merged({"a": {"b": 1}, "c": 2}, {"a": {"d": 3}}) == {"a": {"b": 1, "d": 3}, "c": 2}
    assert under(["a", "b"], 1) == {"a": {"b": 1}}
