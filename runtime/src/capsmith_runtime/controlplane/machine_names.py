"""Names of new Machines, which are also the names of their objects."""

from __future__ import annotations

import re
import secrets
from typing import Final

_DEFAULT: Final = "{{ .controlPlane.name }}-{{ .random }}"
_VARIABLE: Final = re.compile(r"\{\{ *\.(cluster\.name|controlPlane\.name|random) *\}\}")
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Without vowels, so that no words come out."""
_RANDOM_CHARACTERS: Final = 5
_MAX_NAME: Final = 63
"""Names of Nodes and their certificates cannot be longer."""


def new_machine_name(control_plane: str, cluster: str, template: str = "") -> str:
    """Return a name with a random part, as a name must not be used twice.

    ``template`` is ``spec.machineNaming.template``; the CRD requires the random part in it.
    """
    random = "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM_CHARACTERS))
    values = {"cluster.name": cluster, "controlPlane.name": control_plane, "random": random}
    name = _VARIABLE.sub(lambda match: values[match[1]], template or _DEFAULT)
    if len(name) <= _MAX_NAME and random in name:
        return name
    kept = name[: _MAX_NAME - len(random) - 1].rstrip("-.")
    return f"{kept}-{random}"
