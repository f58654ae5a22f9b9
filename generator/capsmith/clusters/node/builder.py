"""Build a provider's image from its Dockerfile, with a tool installed on this computer."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from capsmith.errors import CapsmithError

_SECONDS = 1800
_TAIL_LINES = 30


class ImageNotBuilt(CapsmithError):
    """Raised if an image cannot be built; the message contains the end of the tool's output."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__("lab-image", message, hint=hint)


@dataclass(frozen=True)
class ImageBuilder:
    """A tool that builds images, and the commands to run it."""

    name: str
    """``buildah``, ``podman`` or ``docker``."""

    def build_command(self, folder: Path, image: str) -> list[str]:
        """Return the command that builds ``image`` from the Dockerfile in a folder."""
        version = image.rpartition(":")[2]
        options = ["--network=host", f"--build-arg=VERSION={version}", f"--tag={image}"]
        if self.name == "buildah":
            # Its default isolation needs a runtime that accepts the host's cgroups.
            options += ["--isolation=chroot", "--layers", "--force-rm"]
        file = folder / "Dockerfile"
        return [self.name, "build", *options, f"--file={file}", str(folder)]

    def save_command(self, image: str, archive: Path) -> list[str]:
        """Return the command that writes an image to an archive in Docker's format."""
        if self.name == "buildah":
            return ["buildah", "push", image, f"docker-archive:{archive}:{image}"]
        formats = ["--format=docker-archive"] if self.name == "podman" else []
        return [self.name, "save", *formats, f"--output={archive}", image]

    def build(self, folder: Path, image: str, archive: Path) -> None:
        """Build an image and write it to an archive.

        Raises ImageNotBuilt if it fails.
        """
        _run(self.build_command(folder, image))
        archive.unlink(missing_ok=True)
        _run(self.save_command(image, archive))

    def remove_command(self, image: str) -> list[str]:
        """Return the command that removes an image from the tool's own store."""
        # Without the option, docker also removes the layers that the next build would use.
        keep = ["--no-prune"] if self.name == "docker" else []
        return [self.name, "rmi", *keep, image]

    def remove(self, image: str) -> None:
        """Remove an image from the tool's own store if it is there."""
        _succeeds(self.remove_command(image))


def find_builder(
    find: Callable[[str], str | None] = shutil.which,
    responds: Callable[[list[str]], bool] | None = None,
) -> ImageBuilder:
    """Return buildah if it is installed, else podman, else docker if its daemon responds.

    ``find`` returns the path to an executable, and ``responds`` returns whether a command succeeds.
    Raises ImageNotBuilt if none of these tools is available.
    """
    succeeds = responds or _succeeds
    for name in ("buildah", "podman"):
        if find(name):
            return ImageBuilder(name)
    if find("docker") and succeeds(["docker", "info"]):
        return ImageBuilder("docker")
    hint = "Install buildah (Debian: apt-get install buildah), or run the provider without --pod."
    message = "no tool that builds images: neither buildah, podman nor docker with its daemon"
    raise ImageNotBuilt(message, hint)


def _succeeds(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _run(command: list[str]) -> None:
    hint = "Correct what it reports: a base image that is missing needs access to its registry."
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ImageNotBuilt(f"{' '.join(command)}: {error}", hint) from error
    if done.returncode != 0:
        lines = f"{done.stdout}\n{done.stderr}".strip().splitlines()[-_TAIL_LINES:]
        raise ImageNotBuilt(f"{' '.join(command)} failed:\n" + "\n".join(lines), hint)
