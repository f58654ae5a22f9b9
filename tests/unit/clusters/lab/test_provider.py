"""The folder of a provider, as a lab sees it."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path

import pytest

from capsmith.clusters.lab.demo import check_template, check_variables
from capsmith.clusters.lab.errors import LabError
from capsmith.clusters.lab.installed import choose_next_version
from capsmith.clusters.lab.provider import ProviderRepository, read_provider
from capsmith.clusters.lab.state import LabState
from capsmith.errors import CapsmithError, UnreadableInput


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path, text in {
        "provider.yaml": "name: acme\n",
        "metadata.yaml": "releaseSeries:\n- {major: 0, minor: 2, contract: v1beta2}\n",
        "src/acme/__init__.py": "",
        "src/acme/__main__.py": "",
        "hack/release.py": "import sys\nsys.exit('release refused: no')\n",
        "config/crd/bases/identity.yaml": "spec: {scope: Cluster, names: {kind: AcmeIdentity}}\n",
        "config/crd/bases/machine.yaml": "spec: {scope: Namespaced, names: {kind: AcmeMachine}}\n",
        "config/samples/identity.yaml": "kind: Secret\n---\nkind: AcmeIdentity\n",
        "config/samples/machine.yaml": "kind: AcmeMachine\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


@pytest.fixture
def provider(folder: Path) -> ProviderRepository:
    return read_provider(folder)


def test_name_and_package_are_read(provider: ProviderRepository) -> None:
    assert (provider.name, provider.package) == ("acme", "acme")
    assert provider.first_version() == "v0.2.0"


def test_samples_of_identities_come_with_their_secrets(provider: ProviderRepository) -> None:
    assert [each["kind"] for each in provider.prerequisites] == ["Secret", "AcmeIdentity"]


@pytest.mark.parametrize(
    "credentials", ["AcmeTenant", "{kind: AcmeTenant, namespaced: true}", "[AcmeTenant, Other]"]
)
def test_samples_of_namespaced_identities_come_with_their_secrets(
    folder: Path, credentials: str
) -> None:
    (folder / "provider.yaml").write_text(f"name: acme\ncredentials: {credentials}\n")
    crd = "spec: {scope: Namespaced, names: {kind: AcmeTenant}}\n"
    (folder / "config/crd/bases/identity.yaml").write_text(crd)
    (folder / "config/samples/identity.yaml").write_text("kind: Secret\n---\nkind: AcmeTenant\n")
    provider = read_provider(folder)
    assert [each["kind"] for each in provider.prerequisites] == ["Secret", "AcmeTenant"]


def test_components_with_folders_of_their_own_count(folder: Path) -> None:
    (folder / "config").rename(folder / "bootstrap")
    (folder / "bootstrap" / "config").mkdir()
    for name in ("crd", "samples"):
        (folder / "bootstrap" / name).rename(folder / "bootstrap" / "config" / name)
    provider = read_provider(folder)
    assert [each["kind"] for each in provider.prerequisites] == ["Secret", "AcmeIdentity"]

    digest, stamp = provider.released_digest(), provider.release_stamp()
    (folder / "bootstrap" / "config" / "samples" / "machine.yaml").write_text("kind: Other\n")

    assert provider.released_digest() != digest
    assert provider.release_stamp() != stamp


@pytest.mark.parametrize(
    ("missing", "id"),
    [
        ("provider.yaml", "lab-no-provider"),
        ("src/acme/__main__.py", "lab-not-generated"),
        ("hack/release.py", "lab-not-generated"),
        ("metadata.yaml", "lab-not-generated"),
    ],
)
def test_a_folder_without_a_provider_is_named(folder: Path, missing: str, id: str) -> None:
    (folder / missing).unlink()
    with pytest.raises(UnreadableInput) as caught:
        read_provider(folder)
    assert caught.value.finding.id == id
    assert caught.value.finding.location.file == str(folder)


_BROKEN = ("a: !!bool maybe", "a: !!int ''", "[" * 100_000, "a: &a [*a]", "\x07")


@pytest.mark.parametrize("path", ["config/samples/machine.yaml", "config/crd/bases/machine.yaml"])
@pytest.mark.parametrize("text", [*_BROKEN, "- a"])
def test_manifests_that_are_no_yaml_are_named(folder: Path, path: str, text: str) -> None:
    (folder / path).write_text(text)
    with pytest.raises(UnreadableInput) as caught:
        _ = read_provider(folder).prerequisites
    finding = caught.value.finding
    assert (finding.id, finding.location.file) == ("lab-manifest", str(folder / path))


@pytest.mark.parametrize("text", ["spec: 1", "spec: {scope: Cluster}", "kind: [A]", "1: 2"])
def test_manifests_with_values_of_other_types_do_not_matter(folder: Path, text: str) -> None:
    (folder / "config/crd/bases/machine.yaml").write_text(text)
    (folder / "config/samples/machine.yaml").write_text(text)
    provider = read_provider(folder)
    assert [each["kind"] for each in provider.prerequisites] == ["Secret", "AcmeIdentity"]


@pytest.mark.parametrize("text", ["name: [", "- a", "{}", "name: a\n---\nname: b\n", *_BROKEN])
def test_a_description_without_a_name_is_named(folder: Path, text: str) -> None:
    (folder / "provider.yaml").write_text(text)
    with pytest.raises(UnreadableInput) as caught:
        read_provider(folder)
    assert caught.value.finding.id == "lab-no-provider"


@pytest.mark.parametrize(
    ("kinds", "simulated", "refused"),
    [("", True, False), ("", False, True), ("infrastructure: {A: {}}\n", False, False)],
)
def test_a_cluster_needs_machines_of_some_provider(
    folder: Path, kinds: str, simulated: bool, refused: bool
) -> None:
    (folder / "provider.yaml").write_text(f"name: acme\n{kinds}")
    state = LabState(1, "v1.13.6", "v1.13", "v1.34.4", "/k", simulated=simulated)
    with pytest.raises(LabError) if refused else nullcontext() as caught:
        check_template(read_provider(folder), state)
    assert (caught is not None) == refused


def test_variables_of_the_cluster_template_have_values(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "provider.yaml").write_text("name: acme\ninfrastructure: {A: {}}\n")
    provider = read_provider(folder)
    check_variables(provider)
    (folder / "templates").mkdir()
    (folder / "templates" / "cluster-template.yaml").write_text(
        "a: ${ACME_HOST}\nb: ${ACME_PORT}\n"
    )

    monkeypatch.setenv("ACME_PORT", "6443")
    with pytest.raises(LabError, match="ACME_HOST") as caught:
        check_variables(provider)
    assert caught.value.finding.id == "lab-variables"
    assert "export ACME_HOST=" in caught.value.finding.hint
    assert "ACME_PORT" not in str(caught.value)

    monkeypatch.setenv("ACME_HOST", "192.0.2.10")
    check_variables(provider)


def test_faults_are_those_of_the_runtime_library(
    folder: Path, provider: ProviderRepository
) -> None:
    library = folder / "vendor" / "capsmith_runtime"
    library.mkdir(parents=True)
    (library / "__init__.py").write_text("")
    assert provider.list_faults() == ()
    former = "import dataclasses\nFaults = dataclasses.make_dataclass('F', ['error', 'late'])\n"
    (library / "fault_injection.py").write_text(former)
    assert provider.list_faults() == ("error", "late")


def test_changes_of_code_and_of_releases_are_told_apart(
    folder: Path, provider: ProviderRepository
) -> None:
    code, release = provider.code_stamp(), provider.release_stamp()
    (folder / "src" / "acme" / "cloud.py").write_text("x = 1\n")
    (folder / "src" / "acme" / "__pycache__").mkdir()
    (folder / "src" / "acme" / "__pycache__" / "cloud.pyc").write_text("")
    changed = provider.code_stamp()
    assert {Path(path).name for path, *_ in changed - code} == {"cloud.py"}
    assert provider.release_stamp() == release
    os.utime(folder / "metadata.yaml", ns=(1, 1))
    assert provider.release_stamp() != release
    assert provider.code_stamp() == changed


def test_the_digest_follows_contents_and_names(folder: Path, provider: ProviderRepository) -> None:
    before = provider.released_digest()
    os.utime(folder / "metadata.yaml", ns=(1, 1))
    assert provider.released_digest() == before
    (folder / "config" / "samples" / "machine.yaml").rename(
        folder / "config" / "samples" / "m.yaml"
    )
    assert provider.released_digest() != before


def test_a_refused_release_is_an_error_with_its_reason(
    provider: ProviderRepository, tmp_path: Path
) -> None:
    with pytest.raises(LabError, match="release refused: no") as caught:
        provider.release("v0.2.0", tmp_path / "out")
    assert caught.value.finding.id == "lab-release"


def test_a_release_replaces_that_of_another_provider(
    folder: Path, provider: ProviderRepository, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    script = folder / "hack/release.py"
    for name in ("addon", "infrastructure"):
        script.write_text(
            "import pathlib, sys\n"
            "(option,) = [each for each in sys.argv if each.startswith('--out=')]\n"
            "path = pathlib.Path(option.partition('=')[2])\n"
            "path.mkdir(exist_ok=True)\n"
            f"(path / '{name}-components.yaml').touch()\n"
        )
        provider.release("v0.2.0", out)
    assert [each.name for each in out.iterdir()] == ["infrastructure-components.yaml"]
    script.write_text("import sys\nsys.exit(1)\n")
    with pytest.raises(LabError):
        provider.release("v0.2.1", out)
    assert [each.name for each in out.iterdir()] == ["infrastructure-components.yaml"]


@pytest.mark.parametrize(
    ("code", "hint"),
    [("import nothing_of_that_name", "pip install"), ("syntax error(", "Correct the code")],
)
def test_code_that_cannot_be_imported_is_an_error(
    folder: Path, provider: ProviderRepository, code: str, hint: str
) -> None:
    provider.check_manager()
    (folder / "src" / "acme" / "__main__.py").write_text(code)
    with pytest.raises(CapsmithError) as caught:
        provider.check_manager()
    assert caught.value.finding.id == "lab-manager-imports"
    assert hint in caught.value.finding.hint


@pytest.mark.parametrize(
    ("installed", "version"),
    [("", "v0.2.0"), ("v0.2.0", "v0.2.1"), ("v0.2.9", "v0.2.10"), ("v0.1.3", "v0.2.0")],
)
def test_each_installation_has_a_version_of_its_own(installed: str, version: str) -> None:
    assert choose_next_version("v0.2.0", installed) == version


@pytest.mark.parametrize(
    "file", ["Dockerfile", "pyproject.toml", "requirements.lock", "src/acme/a.py", "vendor/a.py"]
)
def test_each_file_of_the_image_changes_its_stamp(folder: Path, file: str) -> None:
    provider = read_provider(folder)
    before = provider.image_stamp()
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_text("changed")
    assert provider.image_stamp() != before


def test_pipes_in_the_folder_do_not_block(folder: Path, provider: ProviderRepository) -> None:
    os.mkfifo(folder / "config/pipe")
    os.mkfifo(folder / "src/acme/pipe.py")
    assert provider.released_digest()
    assert provider.image_digest()
    os.mkfifo(folder / "config/samples/pipe.yaml")
    with pytest.raises(UnreadableInput, match="not a regular file"):
        _ = provider.prerequisites
