"""The TLS of connections to API servers, of management and of workload clusters.

Nothing else in this package makes a context for an API server, or uses the default of Python.
"""

from __future__ import annotations

import ssl

from lightkube import SingleConfig
from lightkube.config.client_adapter import verify_cluster
from lightkube.config.models import User


def api_server_context(config: SingleConfig) -> ssl.SSLContext:
    """Return a context that verifies the API server's chain, dates and name, as Go's clients do.

    Raises OSError or ValueError for certificates or keys that cannot be read.
    """
    context = verify_cluster(config.cluster, config.user or User(), config.abs_file)
    # Since Python 3.13 the default has this flag (https://docs.python.org/3.13/library/ssl.html,
    # ssl.create_default_context).  It refuses certificates without key identifiers, such as EKS'
    # (https://github.com/kubernetes-client/python/issues/2394), and authorities without key usage.
    # kubectl and core accept them, so a manager has to.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
