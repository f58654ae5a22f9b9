"""validate, generate, explain, rules: pure steps composed, I/O at both ends."""

from __future__ import annotations

from capsmith.pipeline.building import SCHEMA_PATH, build, conformance, schema_text
from capsmith.pipeline.generating import create, generate
from capsmith.pipeline.rules import explain, rules
from capsmith.pipeline.understanding import SPEC_NAME, Loaded, load, understand, validate

__all__ = [
    "SCHEMA_PATH",
    "SPEC_NAME",
    "Loaded",
    "build",
    "conformance",
    "create",
    "explain",
    "generate",
    "load",
    "rules",
    "schema_text",
    "understand",
    "validate",
]
