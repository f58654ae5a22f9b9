"""Names in a rule that nothing declares: wrong for sure, or functions of another release."""

from __future__ import annotations

import re

from capsmith.cel_text import without_literals

_STANDARD = """
    all contains endsWith exists exists_one filter getDate getDayOfMonth getDayOfWeek getDayOfYear
    getFullYear getHours getMilliseconds getMinutes getMonth getSeconds map matches size startsWith
"""
_METHODS = frozenset(_STANDARD.split())
"""Methods of CEL's own types, which no library of functions has."""


def may_be_function(name: str, expression: str) -> bool:
    """Return whether ``name`` is called in ``expression``, or may be a library of functions there.

    A release of Kubernetes may have it; the variables of a rule are the same in all releases.
    """
    text = without_literals(expression)
    last = re.escape(name.rpartition(".")[2])
    if re.search(rf"(?<!\w){last}\s*\(", text):
        return True
    methods = re.findall(rf"(?<![\w.]){re.escape(name)}(?:\s*\.\s*\w+)*\s*\.\s*(\w+)\s*\(", text)
    return any(method not in _METHODS for method in methods)
