"""The real components, built from source once and kept outside the repository.

`python -m tests.e2e.tools` builds whatever is missing; tests do the same on first use.
Each Go module of its own folder pins one set of versions: the Kubernetes and the Cluster API
releases need different client libraries and cannot share a module.
"""

from .build import Toolbox, ToolsUnavailable, toolbox
from .catalogue import CORE_RELEASES, KUBERNETES_VERSION

__all__ = ["CORE_RELEASES", "KUBERNETES_VERSION", "Toolbox", "ToolsUnavailable", "toolbox"]
