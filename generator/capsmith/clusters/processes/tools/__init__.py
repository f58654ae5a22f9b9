"""Build the real components from source once, and keep them in the user's cache.

Each folder is a Go module that pins one set of versions: Kubernetes and each release of Cluster API
need different client libraries and cannot share a module.
"""

from capsmith.clusters.processes.tools.build import Toolbox, toolbox
from capsmith.clusters.processes.tools.catalogue import core_releases, kubernetes_version

__all__ = ["Toolbox", "core_releases", "kubernetes_version", "toolbox"]
