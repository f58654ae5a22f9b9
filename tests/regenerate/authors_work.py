"""The author's changes to a provider until its contract ends."""

from __future__ import annotations

from pathlib import Path

PACKAGE = "src/cluster_api_provider_quay"
ADDED = {
    f"{PACKAGE}/pricing.py": '''"""What servers cost."""

from __future__ import annotations

from packaging.version import Version

_CENTS_A_GIB = 4
SINCE = Version("1.2")


def monthly_cents(disk_gib: int) -> int:
    """The price of a server."""
    return 500 + _CENTS_A_GIB * disk_gib
''',
    "tests/test_pricing.py": '''"""Prices."""

from __future__ import annotations

from cluster_api_provider_quay.pricing import monthly_cents


def test_a_disk_costs() -> None:
    assert monthly_cents(20) == 580
''',
    "docs/ours.md": "# Ours\r\n\r\nWith the line ends of its author.\r\n",
    "config/overlay/region.yaml": """- op: add
  path: /spec/template/spec/containers/0/env/-
  value: {name: QUAY_REGION, value: north}
""",
}
"""The author's own files."""
REPLACED = {
    f"{PACKAGE}/controllers/quay_machine.py": (
        (
            "from ..cloud import SimulatedCloud\n",
            "from ..cloud import SimulatedCloud\nfrom ..pricing import monthly_cents\n",
        ),
        (
            'machine.logger.info("created", server=created.id)',
            "price = monthly_cents(machine.spec.disk_gib)\n"
            '            machine.logger.info("created", server=created.id, cents=price)',
        ),
    ),
    f"{PACKAGE}/controllers/quay_config.py": (
        ('            "role": ', '            "owner": "ours",\n            "role": '),
    ),
    "config/overlay/kustomization.yaml": (
        (
            "resources:\n- ../default\n",
            "resources:\n- ../default\npatches:\n- path: region.yaml\n"
            "  target: {kind: Deployment, name: .*controller-manager}\n",
        ),
    ),
    "pyproject.toml": (
        ('requires-python = ">=3.11"\n', 'requires-python = ">=3.11"\nkeywords = ["ours"]\n'),
    ),
    "Makefile": ((".PHONY: format\n", ".PHONY: ours\nours: ## Ours.\n\ttrue\n\n.PHONY: format\n"),),
    ".github/workflows/ci.yaml": (
        ("      - run: make lint\n", "      - run: make ours\n      - run: make lint\n"),
    ),
}
"""Edits of scaffolds and of shared files."""
SHARED = {"pyproject.toml", "Makefile", ".github/workflows/ci.yaml"}


def work(folder: Path) -> None:
    """Make all of the changes in a repository that was just generated."""
    for path, text in ADDED.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text.encode())
    for path, edits in REPLACED.items():
        before = (folder / path).read_text()
        for old, new in edits:
            assert before.count(old) == 1, (path, old)
            before = before.replace(old, new)
        (folder / path).write_text(before)
