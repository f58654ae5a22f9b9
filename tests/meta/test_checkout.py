"""Tests are of the checkout that they belong to, also where another one is installed."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import capsmith
import capsmith_runtime
from capsmith.clusters.lab import supervisor
from tests.checkout import GENERATOR, ROOT, environment
from tests.e2e.test_lab import Lab

_OTHER = "raise ImportError('of another checkout')\n"
_WHERE = "import capsmith; print(capsmith.__file__)"


def test_modules_are_of_this_checkout() -> None:
    for module in (capsmith, capsmith_runtime, supervisor):
        assert Path(module.__file__ or "").is_relative_to(ROOT)


def test_commands_and_labs_are_of_this_checkout(tmp_path: Path) -> None:
    for given in (environment(), Lab(tmp_path).environment):
        done = subprocess.run(
            [sys.executable, "-c", _WHERE],
            cwd=tmp_path,
            env=given,
            capture_output=True,
            text=True,
        )
        assert done.stdout == f"{GENERATOR / 'capsmith' / '__init__.py'}\n", done.stderr


def test_another_checkout_is_installed(tmp_path: Path) -> None:
    """The tests above pass in an environment with another one."""
    other = tmp_path / "other"
    for name in ("capsmith", "capsmith_runtime"):
        (other / name).mkdir(parents=True)
        (other / name / "__init__.py").write_text(_OTHER)
    made = tmp_path / "venv"
    venv.create(made, symlinks=True)
    python = made / "bin" / "python"
    # Packages of this environment follow those of the other checkout.
    packages = sysconfig.get_path("purelib", vars={"base": str(made), "platbase": str(made)})
    (Path(packages) / "other.pth").write_text(f"{other}\n{sysconfig.get_path('purelib')}\n")
    plain = subprocess.run([python, "-c", _WHERE], cwd=tmp_path, capture_output=True, text=True)
    assert "of another checkout" in plain.stderr
    own = [f"{Path(__file__)}::{each.__name__}" for each in _PROBES]
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *own],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


_PROBES = (test_modules_are_of_this_checkout, test_commands_and_labs_are_of_this_checkout)
