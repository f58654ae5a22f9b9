"""Parse the text of provider.yaml into a :class:`ProviderSpec`, or return all findings."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import ValidationError

from capsmith.findings import Finding, has_errors, ordered
from capsmith.provider_yaml.model import ProviderSpec
from capsmith.provider_yaml.structural import check_structure
from capsmith.provider_yaml.translate import translate
from capsmith.yamldoc.document import Document, parse_document


class Parsed(NamedTuple):
    """The result of reading a text: ``spec`` is None when a finding is an error."""

    document: Document | None
    spec: ProviderSpec | None
    findings: tuple[Finding, ...]


def parse(text: str, file: str) -> Parsed:
    """Return the description in ``text``; ``file`` is only named in the findings.

    No text raises an exception.  Ids: ``yaml-*``, ``spec-*``, ``field-*``, ``schema-*`` and the
    contract rules whose forms a name breaks (CC-50, CRD-04 …).
    """
    document, findings = parse_document(text, file)
    if document is None:
        return Parsed(None, None, ordered(findings))
    return validate_document(document)


def validate_document(document: Document) -> Parsed:
    """Return the description in a document that is composed already; ids as for :func:`parse`."""
    try:
        spec = ProviderSpec.model_validate(document.data)
    except ValidationError as error:
        translated = (translate(part, document) for part in error.errors(include_url=False))
        return Parsed(document, None, ordered([finding for finding in translated if finding]))
    findings = ordered(check_structure(spec, document))
    return Parsed(document, None if has_errors(findings) else spec, findings)
