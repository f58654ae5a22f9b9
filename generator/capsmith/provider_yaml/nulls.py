"""Report keys of provider.yaml that have no value, although the format knows no null for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capsmith.findings import Finding
from capsmith.provider_yaml.forms import SpecModel
from capsmith.yamldoc.document import Document, PathReporter
from capsmith.yamldoc.quote import quote

_HINT = "Give it a value, or remove the key."


def check_nulls(spec: SpecModel, document: Document) -> list[Finding]:
    """Report ``spec-wrong-type`` for each optional key with null as its value.

    For the model, null is the same as no key.  For the author it is not: `required` without a value
    leaves the field optional, and `versions` without one removes a conversion webhook.
    """
    findings: list[Finding] = []
    _check(spec, PathReporter(document, (), findings))
    return findings


def _check(value: Any, reporter: PathReporter) -> None:
    if isinstance(value, SpecModel):
        for name in sorted(value.model_fields_set):
            key, below = value.find_key(name), getattr(value, name)
            # A default may be null, and so may what is inside of it.
            if type(value).model_fields[name].annotation is Any:
                continue
            if below is None:
                _report(key, reporter)
            _check(below, reporter.at(key))
    elif isinstance(value, Mapping):
        for key, below in value.items():
            _check(below, reporter.at(key))
    elif isinstance(value, tuple):
        for index, below in enumerate(value):
            _check(below, reporter.at(index))


def _report(key: str, reporter: PathReporter) -> None:
    hint = reporter.document.suggest_quotes((*reporter.path, key)) or _HINT
    message = f"{quote(key)} must have a value, not null"
    reporter.add_error("spec-wrong-type", message, hint, key)
