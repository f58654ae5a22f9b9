"""Connect a page to a lab or to any management cluster, and serve it."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from capsmith.clusters.lab.connection import connect
from capsmith.clusters.lab.errors import LabError
from capsmith.clusters.lab.folder import LabFolder
from capsmith.clusters.lab.page.sources import ClusterSource, LabSource
from capsmith.clusters.processes import user_kubeconfig

Ready = Callable[[str, Path], None]
"""Function that receives the page's address and the path to the file that opens it."""

_PACKAGES = ("starlette", "uvicorn")


def serve_lab(lab: LabFolder, port: int, ready: Ready) -> None:
    """Serve the page of a running lab until a signal arrives.

    Raises LabError if the lab is not running.
    """
    _require_packages()
    from capsmith.clusters.lab.page.actions import LabActions
    from capsmith.clusters.lab.page.serve import PageServer

    with connect(lab, "page") as connection:
        source = LabSource(lab)
        opener = lab.root / "page.html"
        actions = LabActions(connection.client, lab)
        page = PageServer(connection.client, source, source.title, opener, actions)
        page.serve(port, lambda address: ready(address, opener))


def serve_cluster(
    kubeconfig: Path, context: str, environment: Mapping[str, str], port: int, ready: Ready
) -> None:
    """Serve a page about a cluster until a signal arrives.

    The cluster is the one that ``context`` of the kubeconfig refers to, by default the current
    context.  Only read requests are sent.  Raises UnreadableInput if the kubeconfig cannot be used.
    """
    _require_packages()
    from capsmith.clusters.lab.page.serve import PageServer

    files = user_kubeconfig.find_kubeconfigs(kubeconfig, environment)
    access = user_kubeconfig.read_access(files, context)
    with (
        user_kubeconfig.connect(access) as client,
        # mkdtemp creates a folder that only this user can enter.
        tempfile.TemporaryDirectory(prefix="capsmith-page-") as folder,
    ):
        opener = Path(folder) / "page.html"
        page = PageServer(client, ClusterSource(access.server), access.server, opener)
        page.serve(port, lambda address: ready(address, opener))


def _require_packages() -> None:
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        message = f"required packages are missing: {', '.join(missing)}"
        raise LabError("lab-extra", message, hint="Run `pip install 'capsmith[lab]'`.")
