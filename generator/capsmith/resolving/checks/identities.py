"""Check the kinds of identities under the key ``credentials``."""

from __future__ import annotations

from capsmith.contract.model import Contract
from capsmith.provider.draft import Draft
from capsmith.resolving.checks.fields import check_examples, check_own_fields
from capsmith.yamldoc.place import Place

_ROLE = "Identity"


def check_identities(draft: Draft, contracts: list[Contract], top: Place) -> None:
    """Report ``credentials-keys``, and their fields as those of other kinds."""
    reserved = {
        name: field.rule
        for contract in contracts
        for name, field in contract.types[_ROLE].spec.items()
    }
    for identity in draft.identities:
        place = top.at(*identity.path)
        check_own_fields(identity.fields, reserved, place.at("spec"))
        check_examples(identity.fields, place.at("spec"))
        if identity.keys and not identity.secret:
            message = "the keys name entries of a Secret, but the identity does not refer to one"
            place.error_at_key("credentials-keys", message, "Remove them.", "keys")
