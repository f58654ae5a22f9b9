"""promtool, with which Prometheus tests rules."""

from __future__ import annotations

from pathlib import Path

from capsmith.clusters.processes.tools.build import Progress, read_built
from capsmith.clusters.processes.tools.catalogue import Binary, Module

_HERE = Path(__file__).parent
_PROMTOOL = Module(
    folder="promtool",
    binaries=(Binary("promtool", "github.com/prometheus/prometheus/cmd/promtool"),),
    # Service discovery is most of its dependencies.
    flags=("-tags", "remove_all_sd"),
    is_inlined=False,
)


def build_promtool(progress: Progress = lambda text: None) -> Path:
    """Return the path of promtool, after building it if it is missing.

    Raises ToolsUnavailable if the Go toolchain is missing or the build fails.
    """
    return read_built(_PROMTOOL, _HERE, progress) / "promtool"
