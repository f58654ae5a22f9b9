"""Connect a page to a lab or to any management cluster, and serve it."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from capsmith.clusters.lab.connection import connect
from capsmith.clusters.lab.folder import LabFolder
from capsmith.clusters.lab.page.sources import ClusterSource, LabSource
from capsmith.clusters.lab.requirements import require_packages
from capsmith.clusters.processes import user_kubeconfig

if TYPE_CHECKING:
    from capsmith.clusters.lab.page.serve import PageServer

Ready = Callable[[str, Path], None]
"""Function that receives the page's address and the path to the file that opens it."""

_LOOK_SECONDS = 0.5
_GRACE_SECONDS = 3.0
_PACKAGES = ("starlette", "uvicorn")


def serve_lab(
    lab: LabFolder,
    port: int,
    ready: Ready,
    *,
    opener: Path | None = None,
    ends_with_lab: bool = False,
) -> None:
    """Serve a running lab's page until a signal arrives.

    The page is opened through the file ``opener``, by default in the lab's folder. If
    ``ends_with_lab`` is true, the page also stops a few seconds after the lab. Raises LabError if
    the lab is not running.
    """
    require_page()
    from capsmith.clusters.lab.page.actions import LabActions
    from capsmith.clusters.lab.page.serve import PageServer

    with connect(lab, "page") as connection:
        source = LabSource(lab)
        file = opener or lab.root / "page.html"
        actions = LabActions(connection.client, lab)
        page = PageServer(connection.client, source, source.title, file, actions)
        if ends_with_lab:
            threading.Thread(target=_end_with_lab, args=(lab, page), daemon=True).start()
        page.serve(port, lambda address: ready(address, file))


def serve_cluster(
    kubeconfig: Path, context: str, environment: Mapping[str, str], port: int, ready: Ready
) -> None:
    """Serve a page about a cluster until a signal arrives.

    The cluster is the one that ``context`` in the kubeconfig refers to; an empty ``context`` means
    the current one.  Only read requests are sent.  Raises UnreadableInput if the kubeconfig cannot
    be used.
    """
    require_page()
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


def _end_with_lab(lab: LabFolder, page: PageServer) -> None:
    while lab.is_running:
        time.sleep(_LOOK_SECONDS)
    # Open tabs show that the lab has ended before they lose their connection.
    time.sleep(_GRACE_SECONDS)
    page.stop()


def require_page() -> None:
    """Raise LabError if any package that the page needs from the extra ``lab`` is missing."""
    require_packages(_PACKAGES)
