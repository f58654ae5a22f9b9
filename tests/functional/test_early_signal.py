"""A manager that receives SIGTERM while it starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.golden.cases import EXAMPLES, Case, generated
from tests.repositories import import_path

SLOW = 'print("importing", flush=True)\nimport sys\nsys.stdin.read()\n'


def test_the_first_process_of_a_container_ends_while_it_still_imports(tmp_path: Path) -> None:
    """A signal with its default action does nothing to that process: exit code 143, not -15."""
    folder = tmp_path / "acme"
    generated(Case("acme", EXAMPLES / "acme" / "provider.yaml"), folder)
    runtime = folder / "vendor" / "capsmith_runtime" / "__init__.py"
    docstring, future, rest = runtime.read_text().partition("__all__")
    runtime.write_text(f"{docstring}{SLOW}{future}{rest}")
    process = subprocess.Popen(
        [sys.executable, "-m", "cluster_api_provider_acme"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": import_path(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "importing\n"
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 128 + signal.SIGTERM
        finally:
            process.kill()
