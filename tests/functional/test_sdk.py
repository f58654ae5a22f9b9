"""A repository for an SDK: its client, its fixture, its requirement; types without stubs."""

from __future__ import annotations

import ast
import os
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from capsmith.cli import main
from capsmith_runtime.infrastructure import Credentials

ANSWERS = ("name=acme", "sdk=acme_sdk.compute", "sdk_requirement=acme-sdk[aio]>=2,<3")
NEW = ("client.py", "conftest.py", "test_client.py")
SPEC = """\
capsmith: 1
name: acme
repository: https://github.com/acme/cluster-api-provider-acme
contracts: [v1beta2]
releases: {v0.1: v1beta2}
infrastructure:
  AcmeCluster: {implements: InfraCluster}
  AcmeMachine: {implements: InfraMachine}
credentials:
  kind: AcmeTenant
  keys: [user, password]
  spec:
    url: {type: string, required: true, format: uri, example: "https://acme.example.com"}
    region: {type: string, default: north}
sdk: acme_sdk
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("sdk")
    config = home / "cookiecutterrc"
    config.write_text(f"replay_dir: {home / 'replay'}\n", encoding="utf-8")
    options = ("--no-input", "--config-file", str(config))
    made = CliRunner().invoke(main, ["new", *options, str(home / "acme"), *ANSWERS])
    assert made.exit_code == 0, made.output
    return home / "acme"


def test_the_requirement_is_a_dependency(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))

    assert "acme-sdk[aio]>=2,<3" in project["project"]["dependencies"]


def test_the_fixture_has_the_fields_of_the_identity(tmp_path: Path) -> None:
    (tmp_path / "provider.yaml").write_text(SPEC, encoding="utf-8")
    generated = CliRunner().invoke(main, ["generate", str(tmp_path / "provider.yaml")])
    assert generated.exit_code == 0, generated.output
    package = tmp_path / "src" / "cluster_api_provider_acme"

    identity = runpy.run_path(str(package / "_generated" / "api" / "acme_tenant.py"))
    credentials = _read_credentials(tmp_path / "tests" / "conftest.py")

    assert credentials.identity_kind == "AcmeTenant"
    assert credentials.identity_spec(identity["AcmeTenantSpec"]).url == "https://acme.example.com"


def _read_credentials(conftest: Path) -> Credentials:
    """Return CREDENTIALS without an import of the module, which needs the SDK."""
    (call,) = (
        each.value
        for each in ast.parse(conftest.read_text(encoding="utf-8")).body
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "CREDENTIALS"
    )
    assert isinstance(call, ast.Call)
    values, identity = map(ast.literal_eval, call.args)
    options = {each.arg: ast.literal_eval(each.value) for each in call.keywords if each.arg}
    return Credentials(values, identity, **options)


@pytest.mark.slow
def test_it_is_clean_without_types_of_the_sdk(repository: Path) -> None:
    files = [str(file) for name in NEW for file in sorted(repository.glob(f"**/{name}"))]
    own = [file for file in files if "vendor" not in file]

    for tool in (["ruff", "check"], ["black", "--check"], ["mypy"]):
        command = [sys.executable, "-m", *tool, *own]
        done = subprocess.run(command, cwd=repository, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_its_tests_pass_with_the_sdk_and_name_it_without(repository: Path, tmp_path: Path) -> None:
    package = tmp_path / "acme_sdk"
    package.mkdir()
    for module in ("__init__", "compute"):
        (package / f"{module}.py").touch()
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/test_client.py",
    ]
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])

    installed = subprocess.run(
        command,
        cwd=repository,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    absent = subprocess.run(command, cwd=repository, capture_output=True, text=True)

    assert installed.returncode == 0, installed.stdout
    assert absent.returncode != 0
    assert "No module named 'acme_sdk'" in absent.stdout + absent.stderr
