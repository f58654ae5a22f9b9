"""The real components, built from source once and kept in the user's cache.

Each Go module of its own folder pins one set of versions: the Kubernetes and the Cluster API
releases need different client libraries and cannot share a module.
"""

from capsmith.clusters.processes.tools.build import Toolbox, toolbox
from capsmith.clusters.processes.tools.catalogue import core_releases, kubernetes_version

__all__ = ["Toolbox", "core_releases", "kubernetes_version", "toolbox"]
