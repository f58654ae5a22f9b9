"""Test support for providers: argument builders, a fake API server, and conformance tests.

Import the builders for a provider type by its name::

    from capsmith_runtime.testing import infrastructure as testing

pytest is required.  No manager loads this package, and providers' images do not contain it.
"""

from __future__ import annotations

import pkgutil
import sys

# Registered before they are imported, so that pytest rewrites their assertions, too. A manager does
# not load pytest.
if "pytest" in sys.modules:
    sys.modules["pytest"].register_assert_rewrite(
        *(f"{__name__}.{each.name}" for each in pkgutil.iter_modules(__path__))
    )
