"""Which tests have to run in one process when several share the work."""

from __future__ import annotations

import pytest


def group_of(item: pytest.Item) -> str:
    """The name of a test's group: whoever runs one of a group runs all of it.

    Tests on one instance of a fixture with parameters belong together, across modules where the
    fixture lasts for the session: it is started once, and not again for each module.
    """
    module = item.nodeid.partition("::")[0]
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
        return module
    call = item.callspec
    for scope, place in (("session", ""), ("module", f"{module}-")):
        for name in call.params:
            if call._arg2scope[name].value == scope:
                return f"{place}{name}-{call.indices[name]}"
    return module
