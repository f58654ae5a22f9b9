"""Runtime of the Cluster API providers that capsmith generates.

Layers, from top to bottom; imports only go down: ``testing``; ``manager``; one package for each
provider type (``infrastructure``, ``bootstrap``, ``controlplane``, ``ipam``, ``addon``,
``extension``), next to ``conversion`` and ``migration``; ``webhook`` and ``workload``;
``reconcile``; ``options``; ``kube``, ``contract`` and ``api``.
"""

from capsmith_runtime.version import IncompatibleRuntimeError, __version__, require

__all__ = ["IncompatibleRuntimeError", "__version__", "require"]
