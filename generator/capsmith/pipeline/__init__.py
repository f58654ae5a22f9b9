"""validate, generate, update, explain, rules: pure steps composed, I/O at both ends.

What is asked for is imported when it is asked for: a command that needs little stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from capsmith.pipeline.building import SCHEMA_PATH, build, conformance, schema_text
    from capsmith.pipeline.contract_rules import explain, rules
    from capsmith.pipeline.generating import create, generate
    from capsmith.pipeline.understanding import SPEC_NAME, Loaded, load, understand, validate
    from capsmith.pipeline.updating import abort, check, preview, resume, update

__all__ = [
    "SCHEMA_PATH",
    "SPEC_NAME",
    "Loaded",
    "abort",
    "build",
    "check",
    "conformance",
    "create",
    "explain",
    "generate",
    "load",
    "preview",
    "resume",
    "rules",
    "schema_text",
    "understand",
    "update",
    "validate",
]
_MODULES = {
    "building": ("SCHEMA_PATH", "build", "conformance", "schema_text"),
    "generating": ("create", "generate"),
    "contract_rules": ("explain", "rules"),
    "understanding": ("SPEC_NAME", "Loaded", "load", "understand", "validate"),
    "updating": ("abort", "check", "preview", "resume", "update"),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(name)
