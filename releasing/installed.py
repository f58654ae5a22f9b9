"""What is released works where nothing else is installed, and what it is made of."""

from __future__ import annotations

import sys
import venv
from collections.abc import Iterator
from pathlib import Path

from releasing.commands import FailedError, run
from releasing.distributions import Distribution

_GOLDEN = "tests/golden/acme/expected"
_RECORDS = ".capsmith/"
"""In the expected tree without digests of texts of this repository."""


class Environment:
    """An empty environment, into which come the files of a lock only, with their hashes checked."""

    def __init__(self, folder: Path, lock: Path) -> None:
        """Create it in ``folder``; ``lock`` names all that may be installed."""
        self._folder = folder
        self._wheels = folder / "wheels"
        venv.create(folder / "venv", with_pip=False, symlinks=True)
        hashed = ["--require-hashes", "--dest", str(self._wheels), "--requirement", str(lock)]
        run([*_PIP, "download", *hashed], folder)

    @property
    def programs(self) -> Path:
        """Return the folder of its programs."""
        return self._folder / "venv" / "bin"

    @property
    def python(self) -> Path:
        """Return its interpreter."""
        return self.programs / "python"

    def install(self, wheel: Path, extra: str = "") -> None:
        """Install ``wheel`` with what its metadata require; fail where the lock lacks any of it."""
        # --isolated: settings of this computer could name further packages.
        offline = ["--isolated", "install", "--no-index", "--find-links", str(self._wheels)]
        run([*_PIP, "--python", self.python, *offline, f"{wheel}{extra}"], self._folder)
        run([*_PIP, "--python", self.python, "check"], self._folder)

    def write_sbom(self, project: Path, version: str, sort: str) -> None:
        """Write ``sbom.json``: what the package of the pyproject.toml ``project`` is made of.

        ``sort`` is CycloneDX's type of the package.
        """
        text = project.read_text(encoding="utf-8")
        # cyclonedx-py reads no version that the build finds out.
        static = text.replace('dynamic = ["version"]', f'version = "{version}"')
        described = self._folder / "pyproject.toml"
        described.write_text(static, encoding="utf-8")
        command = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible"]
        command += ["--mc-type", sort, "--pyproject", str(described)]
        output = self._folder / "sbom.json"
        run([*command, "-o", output, self.python], self._folder)


_PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]


def check_generator(
    root: Path, generator: Distribution, version: str, folder: Path, acme: Path
) -> None:
    """Install the generator into ``folder`` and run the demo, which goes to ``acme``.

    Raises FailedError unless the result is the expected tree of the tests.
    """
    folder.mkdir()
    environment = Environment(folder, root / "requirements" / "runtime.txt")
    environment.install(generator.wheel)
    environment.write_sbom(root / "pyproject.toml", version, "application")
    capsmith = environment.programs / "capsmith"
    own = {"CAPSMITH_CACHE": str(folder / "cache")}
    said = run([capsmith, "--version"], folder, own)
    if f"capsmith {version}" not in said.splitlines():
        raise FailedError(f"capsmith --version says {said!r}, not {version}")
    spec = root / "examples" / "acme" / "provider.yaml"
    run([capsmith, "generate", spec, "-o", acme], folder, own)
    differing = list(differing_files(root / _GOLDEN, acme))
    if differing:
        raise FailedError(f"the demo differs from {_GOLDEN}: {', '.join(differing)}")
    run([capsmith, "update", "--runtime", "package", "--allow-dirty", acme], folder, own)


def differing_files(expected: Path, found: Path) -> Iterator[str]:
    """Yield the files below ``expected`` that ``found`` lacks, or has with another content."""
    for path in sorted(expected.rglob("*")):
        name = path.relative_to(expected).as_posix()
        if path.is_dir() or name.startswith(_RECORDS):
            continue
        other = found / name
        if not other.is_file() or other.read_bytes() != path.read_bytes():
            yield name


def check_library(
    root: Path, library: Distribution, version: str, folder: Path, acme: Path
) -> None:
    """Install the library into ``folder`` and run the tests of ``acme`` on it.

    ``acme`` is a generated repository with `runtime: package`.  Raises FailedError if a test fails.
    """
    folder.mkdir()
    environment = Environment(folder, root / "requirements" / "library.txt")
    environment.install(library.wheel)
    environment.write_sbom(root / "runtime" / "pyproject.toml", version, "library")
    show = "import capsmith_runtime as r; print(r.__version__)"
    said = run([environment.python, "-c", show], folder).strip()
    if said != version:
        raise FailedError(f"capsmith_runtime says {said}, not {version}")
    environment.install(library.wheel, "[testing]")
    tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider"]
    run([environment.python, *tests], acme, {"PYTHONPATH": str(acme / "src")})
