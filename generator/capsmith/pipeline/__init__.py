"""validate, generate, update, explain, rules: pure steps composed, I/O at both ends."""

from __future__ import annotations

from capsmith.pipeline.building import SCHEMA_PATH, build, conformance, schema_text
from capsmith.pipeline.engine import Asked
from capsmith.pipeline.generating import create, generate
from capsmith.pipeline.rules import explain, rules
from capsmith.pipeline.understanding import SPEC_NAME, Loaded, load, understand, validate
from capsmith.pipeline.updating import abort, check, preview, resume, update

__all__ = [
    "SCHEMA_PATH",
    "SPEC_NAME",
    "Asked",
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
