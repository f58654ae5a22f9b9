"""Runtime of the Cluster API providers that capsmith generates.

Layers, imports go down only: ``testing``; ``manager``; one package per provider type
(``infrastructure``, ``bootstrap``, ``controlplane``, ``ipam``, ``addon``, ``extension``) beside
``conversion`` and ``migration``; ``webhook`` and ``workload``; ``reconcile``; ``options``;
``kube``, ``contract`` and ``api``.
"""

from capsmith_runtime.version import IncompatibleRuntimeError, __version__, require

__all__ = ["IncompatibleRuntimeError", "__version__", "require"]
