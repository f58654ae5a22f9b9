"""update --contract --keep-api-version: refused where stored objects would forget what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.regenerate.conftest import ROOT, Provider, run

KEEP = ("--contract", "v1beta2", "--keep-api-version")
COMPLETE = (ROOT / "examples/complete/provider.yaml").read_text().replace("v1beta2", "v1beta1")
WITHOUT = re.sub(r"(?m)^controlPlane:\n(  .*\n)+", "", COMPLETE)


@pytest.mark.parametrize("text", [COMPLETE, WITHOUT])
def test_fields_that_users_would_lose_are_reported(tmp_path: Path, text: str) -> None:
    """Of a control plane the reference to its machine template: nothing converts it in place.

    Proves: CRD-15, CP-21.
    """
    (tmp_path / "provider.yaml").write_text(text)
    assert run("generate", str(tmp_path / "provider.yaml")).code == 0
    old = Provider(tmp_path)
    before = old.tree()
    told = old.update("--contract", "v1beta2", "--keep-api-version", "--dry-run")
    said = old.update(*KEEP)

    if text == WITHOUT:
        assert said.code == 0
        assert [each["id"] for each in said.report["findings"]] == []
        return
    for each in (told, said):
        (finding,) = each.report["findings"]
        assert (each.code, finding["id"], finding["line"]) == (1, "keep-api-version", 7)
        assert "SkiffControlPlane" in finding["message"]
        assert "spec.machineTemplate.infrastructureRef" in finding["message"]
        assert "--contract v1beta1,v1beta2" in finding["hint"]
    assert old.tree() == before
    # Nor is it offered to those who take the other way, or ask what there is to do.
    both = old.update("--contract", "v1beta1,v1beta2", "--dry-run")
    assert both.report["facts"]["upgrade"]["simpler"] is None
    assert "--keep-api-version" not in run("doctor", str(tmp_path)).text
