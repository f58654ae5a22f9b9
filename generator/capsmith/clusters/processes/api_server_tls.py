"""The TLS of connections to API servers; nothing else in this package makes a context for them."""

from __future__ import annotations

import ssl
from pathlib import Path


def api_server_context(authority: Path) -> ssl.SSLContext:
    """Return a context that verifies the API server's chain, dates and name, as Go's clients do.

    Raises OSError for an authority that cannot be read.
    """
    context = ssl.create_default_context(cafile=str(authority))
    # Since Python 3.13 the default has this flag (https://docs.python.org/3.13/library/ssl.html,
    # ssl.create_default_context).  It refuses certificates without key identifiers, such as EKS'
    # (https://github.com/kubernetes-client/python/issues/2394), and authorities without key usage.
    # kubectl and core accept them, so capsmith has to.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
