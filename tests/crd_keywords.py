"""Keywords in schemas of CRDs: those that the API server takes, and those that it refuses."""

from __future__ import annotations

from typing import Any

from tests.realapi.crd_mutants import Document, Mutant, make_base

_TEXT = {"type": "string", "default": "a"}
TAKEN: tuple[Document, ...] = (
    {"spec": {**_TEXT, "anyOf": [], "oneOf": [], "allOf": []}},
    {"metadata": {"type": "object", "allOf": []}},
    {"spec": {"type": "string", "definitions": {}, "patternProperties": {}}},
    {"spec": {"type": "object", "not": {"additionalProperties": False}}},
)
"""Properties of a version's schema."""
REFUSED: tuple[Document, ...] = (
    {"spec": {"type": "string", "additionalItems": False}},
    {"spec": {"type": "string", "additionalItems": {}}},
    {"metadata": {"type": "object", "additionalProperties": False}},
)


def make_crd(properties: Document) -> Mutant:
    """Return a CRD whose first version has only these properties."""
    document = make_base()
    version: Any = document["spec"]["versions"][0]
    schema = {"type": "object", "properties": properties}
    version.update(schema={"openAPIV3Schema": schema}, subresources={}, additionalPrinterColumns=[])
    return Mutant(str(properties), document)


def make_crd_with_empty_label() -> Mutant:
    """Return a CRD with a label and an annotation that have no value, which counts as empty."""
    document = make_base()
    document["metadata"].update(labels={"a": None}, annotations={"b": None})
    return Mutant("empty label", document)
