"""Find scaffolds that a run creates although a module that they import no longer exists."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from capsmith.findings import Finding, Location, Severity
from capsmith.merging.decide import Decision
from capsmith.report import Outcome
from capsmith.tree import FileTree, Owner


def find_missing_modules(
    decisions: Iterable[Decision], tree: FileTree, present: Mapping[str, bytes]
) -> Iterator[Finding]:
    """Yield a warning for each module of capsmith that a new scaffold imports and that is deleted.

    ``present`` has the files that exist before the run.

    Ids: ``scaffold-module-deleted``.
    """
    decisions = tuple(decisions)
    created = [each.path for each in decisions if each.outcome is Outcome.CREATED]
    there = {*present, *created}
    for path in created:
        if tree[path].owner is not Owner.SCAFFOLD or not path.endswith(".py"):
            continue
        for module in dict.fromkeys(_list_modules(path, str(tree[path].text))):
            if module in tree.files and module not in there:
                yield Finding(
                    "scaffold-module-deleted",
                    f"the new file imports {module}, which you have deleted",
                    Location(path),
                    Severity.WARNING,
                    hint="Use your own client instead: until then, no manager starts and no test "
                    f"runs.  Or take the deleted file back: capsmith update --restore {module}",
                )


def _list_modules(path: str, text: str) -> Iterator[str]:
    """Yield the paths that the modules imported at ``path`` would have in the repository."""
    folder = path.split("/")[:-1]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            base = folder[: len(folder) - node.level + 1] if node.level else ["src"]
            yield "/".join([*base, *node.module.split(".")]) + ".py"
