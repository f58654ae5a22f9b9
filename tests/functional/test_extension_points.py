"""Ways to change a provider without an edit of a generated file, as far as a release of it."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith.commands import eject, update
from capsmith.commands.generate import generate
from capsmith.commands.plan import UpdateOptions
from capsmith.report import Outcome
from tests.functional.conftest import Repository

EXAMPLES = Path(__file__).parents[2] / "examples"
EXTRA = [{"apiGroups": ["acme.example.com"], "resources": ["volumes"], "verbs": ["get", "patch"]}]
VARIABLE = re.compile(r"(?<!\$)\$\{([A-Z0-9_]+):=([^}]*)\}")


@pytest.fixture
def made(request: pytest.FixtureRequest, tmp_path: Path, scratch: Path) -> Repository:
    """Return a new repository of an example, which the test may change."""
    text = (EXAMPLES / request.param / "provider.yaml").read_text(encoding="utf-8")
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "provider.yaml").write_text(text, encoding="utf-8")
    repository = Repository(folder, scratch)
    regenerated(repository)
    return repository


one = pytest.mark.parametrize("made", ["acme"], indirect=True)
several = pytest.mark.parametrize("made", ["acme", "complete"], indirect=True)


def regenerated(repository: Repository) -> None:
    spec = repository.folder / "provider.yaml"
    report = generate(spec, repository.folder)
    assert report.exit_code == 0, report.findings


def described(repository: Repository, **keys: Any) -> None:
    """Add keys to the description, and update."""
    with (repository.folder / "provider.yaml").open("a", encoding="utf-8") as file:
        file.write(yaml.safe_dump(keys))
    report = update.update(repository.folder, UpdateOptions())
    assert report.exit_code == 0, report.findings


def released(repository: Repository) -> dict[str, list[dict[str, Any]]]:
    """Return the objects of a release by component, as clusterctl would install them."""
    metadata = yaml.safe_load((repository.folder / "metadata.yaml").read_text(encoding="utf-8"))
    newest = max(metadata["releaseSeries"], key=lambda each: (each["major"], each["minor"]))
    version = f"v{newest['major']}.{newest['minor']}.0"
    out = repository.folder / "out"
    repository.run("make", "release-manifests", f"VERSION={version}", f"OUT={out}")
    return {
        path.name: list(yaml.safe_load_all(VARIABLE.sub(r"\2", path.read_text(encoding="utf-8"))))
        for path in sorted(out.glob("*-components.yaml"))
    }


def the(objects: list[dict[str, Any]], kind: str, name: str = "") -> dict[str, Any]:
    (found,) = (
        each for each in objects if each["kind"] == kind and each["metadata"]["name"].endswith(name)
    )
    return found


def manager(objects: list[dict[str, Any]]) -> dict[str, Any]:
    (container,) = the(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    return dict(container)


def configs(repository: Repository) -> Iterator[Path]:
    yield from sorted(repository.folder.rglob("config/overlay/kustomization.yaml"))


@several
def test_patches_of_the_overlay_are_in_every_component(made: Repository) -> None:
    """Those that the scaffold shows as an example, with their comment signs taken away."""
    overlays = list(configs(made))
    for path in overlays:
        text = path.read_text(encoding="utf-8")
        example = text[text.index("# patches:") : text.index("#\n# Metrics")]
        bare = re.sub(r"(?m)^# ?", "", example)
        path.write_text(text.replace(example, bare), encoding="utf-8")
    components = released(made)

    assert len(components) == len(overlays)
    for objects in components.values():
        assert {"name": "EXAMPLE_REGION", "value": "north"} in manager(objects)["env"]
    regenerated(made)
    assert all("EXAMPLE_REGION" in path.read_text(encoding="utf-8") for path in overlays)


@several
def test_extra_permissions_are_bound_to_every_manager(made: Repository) -> None:
    roles = sorted(made.folder.rglob("config/rbac/extra_role.yaml"))
    for path in roles:
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("rules: []", yaml.safe_dump({"rules": EXTRA})), "utf-8")
    components = released(made)

    assert len(components) == len(roles)
    for objects in components.values():
        role = the(objects, "ClusterRole", "-extra-role")
        binding = the(objects, "ClusterRoleBinding", "-extra-rolebinding")
        account = the(objects, "ServiceAccount")["metadata"]
        assert role["rules"] == EXTRA
        assert binding["roleRef"]["name"] == role["metadata"]["name"]
        assert binding["subjects"] == [
            {
                "kind": "ServiceAccount",
                "name": account["name"],
                "namespace": account["namespace"],
            }
        ]
        deployment = the(objects, "Deployment")["spec"]["template"]["spec"]
        assert deployment["serviceAccountName"] == account["name"]


@one
def test_permissions_of_the_description_are_in_the_role(made: Repository) -> None:
    described(made, rbac=EXTRA)
    (objects,) = released(made).values()
    namespace = the(objects, "Namespace")["metadata"]["name"]
    role = the(objects, "ClusterRole", f"{namespace}-manager-role")

    assert EXTRA[0] in role["rules"]


@one
def test_dependencies_are_in_what_pip_installs(made: Repository) -> None:
    project = made.folder / "pyproject.toml"
    text = project.read_text(encoding="utf-8")
    project.write_text(text.replace("dev = [\n", 'dev = [\n  "my-tool>=1",\n'), encoding="utf-8")
    described(
        made,
        dependencies=["acme-sdk[aio]>=2,<3", "tomli>=2; python_version < '3.11'"],
        devDependencies=["acme-stubs>=2"],
    )
    read = tomllib.loads(project.read_text(encoding="utf-8"))["project"]

    assert {"my-tool>=1", "acme-stubs>=2", "pytest>=8.3,<10"} < set(
        read["optional-dependencies"]["dev"]
    )
    installed = json.loads(made.python("-m", "hatchling", "metadata", "dependencies"))
    assert {"acme-sdk[aio]<3,>=2", "tomli>=2; python_version < '3.11'"} < set(installed)


@one
def test_a_file_that_was_taken_over_is_what_is_released(made: Repository) -> None:
    name = "config/manager/manager.yaml"
    path = made.folder / name
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("memory: 512Mi", "memory: 2Gi"), encoding="utf-8")
    assert update.update(made.folder, UpdateOptions()).exit_code == 1
    report = update.update(made.folder, UpdateOptions(mine=frozenset({name})))
    assert report.exit_code == 0
    described(made, title="Another")
    locked = yaml.safe_load((made.folder / ".capsmith/lock.yaml").read_text(encoding="utf-8"))

    assert locked["files"][name]["mine"] is True
    (objects,) = released(made).values()
    assert manager(objects)["resources"]["limits"] == {"memory": "2Gi"}


@one
def test_blueprints_of_the_authors_are_what_is_released(made: Repository) -> None:
    over = made.folder / "company/project/config/manager/manager.yaml.jinja"
    over.parent.mkdir(parents=True)
    over.write_text(
        '{% extends "capsmith:project/config/manager/manager.yaml.jinja" %}\n'
        "{% block environment %}\n{{ super() }}"
        "        - name: COMPANY\n          value: {{ provider.name | to_yaml }}\n{% endblock %}\n"
        "{% block containers %}\n      - name: sidecar\n        image: example.com/s:1\n"
        "{% endblock %}\n",
        encoding="utf-8",
    )
    described(made, blueprints="company")
    (objects,) = released(made).values()
    containers = the(objects, "Deployment")["spec"]["template"]["spec"]["containers"]

    assert [container["name"] for container in containers] == ["manager", "sidecar"]
    assert {"name": "COMPANY", "value": "acme"} in containers[0]["env"]
    assert {each["name"] for each in containers[0]["env"]} > {"POD_NAME", "POD_UID"}


@one
def test_an_ejected_repository_works_alone(made: Repository) -> None:
    before = released(made)
    report = eject.eject(made.folder)

    assert report.exit_code == 0
    assert {file.outcome for file in report.outcomes} == {Outcome.UPDATED, Outcome.REMOVED}
    (made.folder / "provider.yaml").unlink()
    assert not (made.folder / ".capsmith").exists()
    tests = made.python(
        "-c",
        "import sys, pytest; sys.modules['capsmith'] = None; sys.exit(pytest.main(sys.argv[1:]))",
        *("-q", "-p", "no:cacheprovider"),
    )
    passed = re.search(r"(\d+) passed", tests)
    assert passed is not None
    assert int(passed[1]) > 30
    made.python("-m", "ruff", "check", ".")
    made.python("-m", "black", "--check", "--quiet", ".")
    made.python("-m", "mypy")
    assert released(made) == before
