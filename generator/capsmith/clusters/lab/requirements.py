"""Determine what this computer lacks for a lab, before anything is built or started.

Imports no package from the extra ``lab``, because these packages may be missing.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from capsmith.clusters.lab.errors import LabError
from capsmith.clusters.node.builder import find_builder
from capsmith.clusters.node.host import require_host
from capsmith.clusters.processes.tools.go import find_go
from capsmith.errors import CapsmithError

_PACKAGES = ("cryptography", "trustme")
_KIND = ("docker", "kind")


@dataclass(frozen=True)
class LabNeeds:
    """What a `capsmith lab` command needs, apart from Linux and the extra ``lab``."""

    go: bool = False
    """Whether the command builds tools with Go, unless they have been built before."""
    node: bool = False
    """Whether the command starts a node."""
    image: bool = False
    """Whether the command builds providers' images."""
    kind: bool = False
    """Whether the command creates a cluster with kind."""


def require_lab(needs: LabNeeds) -> None:
    """Raise an error if this computer lacks anything in ``needs``; its message lists everything.

    If several requirements are missing, the error is a LabError.
    """
    if not sys.platform.startswith("linux"):
        hint = "Use capsmith conformance or make run with a cluster of your own."
        raise LabError("lab-platform", f"a lab requires Linux, not {sys.platform}", hint=hint)
    errors = list(_find_errors(needs))
    if len(errors) == 1:
        raise errors[0]
    if errors:
        lacking = "; ".join(str(each) for each in errors)
        message = f"this computer lacks several things that a lab needs: {lacking}"
        hint = " ".join(each.finding.hint for each in errors)
        raise LabError("lab-requirements", message, hint=hint)


def require_lab_command(arguments: Sequence[str]) -> None:
    """Raise LabError if this computer is not Linux or lacks packages from the extra ``lab``.

    In that case, the message also lists everything else that the command lacks; otherwise, only the
    command itself checks the rest.  ``arguments`` is the part of the command line after ``lab``.
    """
    if not sys.platform.startswith("linux") or next(_find_errors(LabNeeds()), None):
        require_lab(_read_needs(arguments))


def _read_needs(arguments: Sequence[str]) -> LabNeeds:
    is_pod = "--pod" in arguments
    return LabNeeds(
        go=bool({"up", "demo", "exec"} & set(arguments[:1])),
        node="--node" in arguments or (is_pod and "demo" in arguments[:1]),
        image=is_pod,
        kind="--kind" in arguments,
    )


def _find_errors(needs: LabNeeds) -> Iterator[CapsmithError]:
    checks: list[tuple[bool, Callable[[], object]]] = [
        (True, lambda: require_packages(_PACKAGES)),
        (needs.go, find_go),
        (needs.kind, _require_kind),
        (needs.node, require_host),
        (needs.image, find_builder),
    ]
    for is_needed, check in checks:
        if is_needed:
            try:
                check()
            except CapsmithError as error:
                yield error


def require_packages(names: Sequence[str]) -> None:
    """Raise LabError if any of the packages ``names`` from the extra ``lab`` is missing."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        hint = "Run `pip install 'capsmith[lab]'`."
        message = f"required packages are missing: {', '.join(missing)}"
        raise LabError("lab-extra", message, hint=hint)


def _require_kind() -> None:
    missing = [name for name in _KIND if shutil.which(name) is None]
    if missing:
        hint = "Install them, or run capsmith lab up without --kind: it needs no containers."
        raise LabError("lab-kind", f"not found on PATH: {', '.join(missing)}", hint=hint)
