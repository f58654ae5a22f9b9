"""What the runtime needs of the manifests that it runs with: permissions, CRD fields, flags.

`python -m tests.runtime.requirements_of_series` records those of the current series.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

import capsmith_runtime
from capsmith import resources
from capsmith.contract.load import list_versions, load_contract
from capsmith_runtime import options
from capsmith_runtime.migration.options import MIGRATION
from capsmith_runtime.webhook.options import WEBHOOK

SERIES = capsmith_runtime.__version__.rpartition(".")[0]
RECORD = Path(__file__).parent / "series" / f"{SERIES}.json"
_PACKAGE = Path(capsmith_runtime.__file__).parent


def requirements() -> dict[str, list[str]]:
    """Return the requirements by sort, each as a line of text."""
    return {
        "permissions": sorted(set(_permissions())),
        "fields": sorted(set(_fields())),
        "flags": sorted(_flags()),
    }


def _permissions() -> Iterator[str]:
    for file in sorted(_PACKAGE.glob("*/permissions.yaml")):
        for role, rules in yaml.safe_load(file.read_text(encoding="utf-8")).items():
            for rule in rules:
                target = {
                    key: value
                    for key, value in rule.items()
                    if key not in ("rules", "reason", "verbs", "uncalled")
                }
                words = json.dumps(target, sort_keys=True)
                yield from (f"{file.parent.name} {role} {verb} {words}" for verb in rule["verbs"])


def _fields() -> Iterator[str]:
    for version in list_versions():
        types: Any = load_contract(version, resources.schemas()).types
        for role, shape in types.items():
            for part, fields in (("spec", shape.spec), ("status", shape.status)):
                yield from (f"{version} {role} {part}.{field.name}" for field in fields.values())


def _flags() -> Iterator[str]:
    parser = options._parser(["infrastructure"])
    for extra in (MIGRATION, WEBHOOK):
        extra.add(parser)
    for action in parser._actions:
        yield from action.option_strings


def main() -> int:
    RECORD.write_text(json.dumps(requirements(), indent=2) + "\n", encoding="utf-8")
    print(f"wrote {RECORD.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
