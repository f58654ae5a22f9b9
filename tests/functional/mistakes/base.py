"""An edit of a generated repository that an author could make, and the kit that finds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

EXAMPLES = Path(__file__).parents[3] / "examples"
# Texts of generated reconcilers that several mistakes replace.
PLACES = "                machine.failure_domain,\n            )"
INITIALISER = "    def __init__(self, cloud: SimulatedCloud | None = None) -> None:"


class Mistake(NamedTuple):
    """One text of a repository, and what a mistaken author writes instead."""

    path: str
    """A glob below the root of the repository that matches one file."""
    right: str
    wrong: str
    """May use `uuid`, for what differs at each call: ids of objects do not, memory is reused."""
    further: tuple[tuple[str, str], ...] = ()
    """Further texts of the file, each with what the author writes instead."""

    def apply_to(self, text: str) -> str:
        """Return the text of the file with the mistake."""
        head = "from __future__ import annotations\n"
        text = text.replace(head, f"{head}\nimport uuid\n", 1)
        for right, wrong in ((self.right, self.wrong), *self.further):
            assert right in text
            text = text.replace(right, wrong)
        return text


@dataclass(frozen=True)
class Kit:
    """The kit of one repository, and the mistakes that it finds."""

    description: str
    """The text of its provider.yaml."""
    mistakes: Mapping[str, Mistake]
    right: tuple[Mistake, ...] = ()
    """Edits that are right, of code that only mistakes have otherwise."""
    authored: tuple[Mistake, ...] = ()
    """Edits that are right, and in which the mistakes are planted."""
    wait_seconds: int = 10
    """How long a scenario waits for a state that a mistake may prevent, on its virtual clock."""


def read_example(name: str) -> str:
    return (EXAMPLES / name / "provider.yaml").read_text(encoding="utf-8")


def edit_controller(name: str, right: str, wrong: str, *further: tuple[str, str]) -> Mistake:
    return Mistake(f"src/*/controllers/{name}.py", right, wrong, further)


def find_file(repository: Path, mistake: Mistake) -> Path:
    """Return the file of a repository that a mistake is planted in."""
    (found,) = repository.glob(mistake.path)
    return found
