"""The generator reserves exactly the flags and variables that managers already have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from capsmith.resolving.checks.manager import OWN_FLAGS, OWN_VARIABLES
from capsmith_runtime.migration.options import MIGRATION
from capsmith_runtime.options import parse
from capsmith_runtime.webhook.options import WEBHOOK

CONFIG = Path(__file__).parents[2] / "blueprints/project/config"
MANIFEST = CONFIG / "manager/manager.yaml.jinja"


def test_the_flags_of_the_library_are_reserved(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--help"], ["infrastructure"], [MIGRATION, WEBHOOK], distribution="pip")
    found = set(
        re.findall(r"^ +(?:-\w(?: \w+)?, )?--([a-z-]+)", capsys.readouterr().out, re.MULTILINE)
    )
    assert found == OWN_FLAGS


def test_the_variables_of_the_manifest_are_reserved() -> None:
    found = re.findall(r"--([a-z-]+)=.*?}}_([A-Z_]+):=", MANIFEST.read_text(encoding="utf-8"))
    own = {name for flag, name in found if name == flag.upper().replace("-", "_")}
    assert {flag for flag, _ in found} <= OWN_FLAGS

    texts = [path.read_text(encoding="utf-8") for path in CONFIG.rglob("*.jinja")]
    variables = re.findall(r"environment_prefix }}_([A-Z0-9_]+):=", "".join(texts))
    assert set(variables) - own == OWN_VARIABLES
