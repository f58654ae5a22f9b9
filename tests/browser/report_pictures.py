"""Pictures of the reports for the documentation: ``python -m tests.browser.report_pictures``.

Each report is printed by its command: those of ``verify`` on a small release with mistakes and on a
changed copy of it, that of ``conformance`` on the example in a real run whose cloud refuses logins.
Beside the pictures is a digest of everything that decides how they look; a test compares it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from capsmith.clusters.lab.provider import read_provider
from tests.browser import digest
from tests.browser.window import Window, find_programs, open_window

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
DIGEST = PICTURES / "reports.sha256"
WIDTH, HEIGHT = 1280, 860
_CAPSMITH = ROOT / "generator" / "capsmith"
_RELEASE = ROOT / "tests" / "verify" / "release" / "v0.2.0"
_EXAMPLE = ROOT / "examples" / "acme" / "provider.yaml"
_SOURCES = (
    *sorted((_CAPSMITH / "report_pages").glob("*.*")),
    _CAPSMITH / "judge" / "release" / "page.py",
    _CAPSMITH / "judge" / "running" / "page.py",
    _CAPSMITH / "judge" / "running" / "life.py",
    _CAPSMITH / "commands" / "doctor.py",
    *sorted(path for path in _RELEASE.iterdir()),
    _EXAMPLE,
    Path(__file__),
)
_CHECKS = "cluster-provisioned,machine-provisioned,machine-provider-id"
_PACKAGE = "cluster_api_provider_acme"


class Picture(NamedTuple):
    """A picture of a report, and the element at its top."""

    name: str
    arguments: tuple[str, ...]
    top: str = "body"


def list_pictures(folder: Path) -> tuple[Picture, ...]:
    """Return the pictures; the commands run in a folder with what they need."""
    repository = folder / "acme"
    manager = f"{sys.executable} -m {_PACKAGE}"
    environment = {
        "PYTHONPATH": os.pathsep.join(str(repository / each) for each in ("src", "vendor")),
        "CAPSMITH_SIMULATED_CLOUD": str(folder / "cloud"),
        "CAPSMITH_SIMULATED_FAULTS": "refuse=1",
    }
    return (
        Picture("report-verify", ("verify", "out/v0.1.0", "out/v0.2.0", "--select", "CC,IM")),
        Picture("report-upgrade", ("verify", "--upgrade", "out/v0.1.0", "out/v0.2.0")),
        Picture("report-target", ("verify", "out/v0.2.0", "--target", "core=v1.16"), ".findings"),
        Picture("report-doctor", ("doctor", "former")),
        Picture(
            "report-conformance",
            (
                *("conformance", "acme/out", "--manager", manager, "--select", _CHECKS),
                *("--timeout", "20", "--apply", "identity.yaml"),
                *(word for each in environment.items() for word in ("--env", "=".join(each))),
            ),
            ".finding",
        ),
    )


def compute_digest() -> str:
    """Return a digest of what decides how the pictures look."""
    return digest.compute_digest(_SOURCES, ROOT)


def prepare(folder: Path) -> None:
    """Write two releases, and the repository and a release of the example."""
    for version in ("v0.1.0", "v0.2.0"):
        shutil.copytree(_RELEASE, folder / "out" / version)
    components = folder / "out" / "v0.1.0" / "infrastructure-components.yaml"
    text = components.read_text(encoding="utf-8")
    # The release before had a field that this one has no longer, and a container's usual name.
    text = text.replace("name: controller\n", "name: manager\n")
    text = text.replace("{providerID:", "{zone: {type: string}, providerID:")
    components.write_text(text, encoding="utf-8")
    run(folder, "generate", str(_EXAMPLE), "-o", "acme")
    # A repository that still follows the former contract.
    former = folder / "former.yaml"
    description = _EXAMPLE.read_text(encoding="utf-8").replace("v1beta2", "v1beta1")
    former.write_text(description, encoding="utf-8")
    run(folder, "generate", str(former), "-o", "former")
    repository = read_provider(folder / "acme")
    sample = folder / "acme" / "config" / "samples" / "acme_identity.yaml"
    identity = sample.read_text(encoding="utf-8").replace("- default", "- conformance-acme")
    (folder / "identity.yaml").write_text(identity, encoding="utf-8")
    repository.release("v0.1.0", folder / "acme" / "out")


def run(folder: Path, *arguments: str) -> str:
    """Return what a command prints, whatever its verdict.

    Raises RuntimeError if the command cannot judge.
    """
    command = [sys.executable, "-m", "capsmith", *arguments]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(arguments)} ended with {done.returncode}")
    return done.stdout


def take_picture(window: Window, folder: Path, picture: Picture) -> None:
    """Save the part of a report that begins with the element at the picture's top."""
    page = folder / f"{picture.name}.html"
    page.write_text(run(folder, *picture.arguments, "--format", "html"), encoding="utf-8")
    size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
    window.open(page.as_uri())
    window.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    window.find(picture.top)
    window.run("document.querySelector(arguments[0]).scrollIntoView()", picture.top)
    window.driver.save_screenshot(str(PICTURES / f"{picture.name}.png"))


def main() -> None:
    """Take the pictures and record the digest; with names, take only these pictures."""
    programs = find_programs()
    if programs is None:
        sys.exit("needs Chromium and its driver")
    with tempfile.TemporaryDirectory(prefix="capsmith-") as name:
        folder = Path(name)
        prepare(folder)
        with open_window(*programs, folder / "profile") as window:
            for picture in list_pictures(folder):
                if not sys.argv[1:] or picture.name in sys.argv[1:]:
                    take_picture(window, folder, picture)
    DIGEST.write_text(f"{compute_digest()}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
