"""The tool that builds an image, and its commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from capsmith.clusters.node.builder import ImageBuilder, ImageNotBuilt, find_builder

IMAGE = "example.com/a:v0.1.0"
FOLDER = Path("/provider")


def find(*installed: str, daemon: bool = True) -> str:
    def path(name: str) -> str | None:
        return f"/usr/bin/{name}" if name in installed else None

    return find_builder(path, lambda command: daemon).name


def test_a_tool_without_daemon_comes_first() -> None:
    assert find("docker", "podman", "buildah") == "buildah"
    assert find("docker", "podman") == "podman"
    assert find("docker") == "docker"


@pytest.mark.parametrize("installed", [(), ("docker",)])
def test_docker_without_its_daemon_is_none(installed: tuple[str, ...]) -> None:
    with pytest.raises(ImageNotBuilt) as raised:
        find(*installed, daemon=False)
    assert raised.value.finding.id == "lab-image"
    assert "buildah" in str(raised.value)


@pytest.mark.parametrize("tool", ["buildah", "podman", "docker"])
def test_the_version_is_the_tag(tool: str) -> None:
    command = ImageBuilder(tool).build_command(FOLDER, IMAGE)
    assert command[:2] == [tool, "build"]
    assert {"--build-arg=VERSION=v0.1.0", f"--tag={IMAGE}"} <= set(command)
    assert command[-1] == "/provider"


def test_archives_have_the_format_of_docker() -> None:
    archive = Path("/lab/image.tar")
    assert ImageBuilder("buildah").save_command(IMAGE, archive)[-1] == (
        f"docker-archive:/lab/image.tar:{IMAGE}"
    )
    assert "--format=docker-archive" in ImageBuilder("podman").save_command(IMAGE, archive)
    assert ImageBuilder("docker").save_command(IMAGE, archive)[-1] == IMAGE


def test_images_are_removed_from_the_store_of_the_tool() -> None:
    assert ImageBuilder("buildah").remove_command(IMAGE) == ["buildah", "rmi", IMAGE]
    assert ImageBuilder("docker").remove_command(IMAGE) == ["docker", "rmi", "--no-prune", IMAGE]
    ImageBuilder("no-such-builder").remove(IMAGE)


def test_a_failed_build_reports_its_output(tmp_path: Path) -> None:
    (tmp_path / "false-builder").write_text("#!/bin/sh\necho no such base >&2\nexit 1\n")
    (tmp_path / "false-builder").chmod(0o755)
    builder = ImageBuilder(str(tmp_path / "false-builder"))
    with pytest.raises(ImageNotBuilt, match="no such base"):
        builder.build(FOLDER, IMAGE, tmp_path / "image.tar")
