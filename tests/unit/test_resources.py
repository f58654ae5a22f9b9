from __future__ import annotations

from capsmith import resources


def test_the_data_are_there() -> None:
    assert (resources.blueprints() / "manifest.yaml").is_file()
    assert (resources.schemas() / "contracts").is_dir()
