"""What the options of `capsmith update` ask for.  Imports the whole way only when it is gone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from capsmith.pipeline.memory import still_up_to_date
from capsmith.report import Report


def run_update(
    folder: Path,
    mode: str,
    *,
    style: str,
    restore: Iterable[str],
    mine: Iterable[str],
    not_mine: Iterable[str],
    **options: bool,
) -> tuple[Report, str]:
    """The report, and the closing words when the answer is yes.

    ``mode`` is ``check``, ``dry_run``, ``resume``, ``abort``, or empty; the options are named as
    those of the command.  Raises what :mod:`capsmith.pipeline.updating` raises.
    """
    files = {
        name: frozenset(paths)
        for name, paths in (("restore", restore), ("mine", mine), ("not_mine", not_mine))
    }
    if mode == "check" and not any(files.values()) and not options["diff"]:
        report = still_up_to_date(folder)
        if report is not None:
            return report, "is up to date."

    from capsmith.merging.shared_file import Style
    from capsmith.pipeline import updating
    from capsmith.pipeline.engine import Asked

    asked = Asked(Style(style), options["force"], diff=options["diff"], **files)
    match mode:
        case "check":
            return updating.check(folder, asked), "is up to date."
        case "resume":
            return updating.resume(folder), "is up to date."
        case "abort":
            report = updating.abort(folder, force=asked.force)
            return report, "is as it was before the update."
        case _ if mode == "dry_run" or asked.diff:
            report = updating.preview(folder, asked)
            return report, "is as it was: this only told what would happen."
        case _:
            report = updating.update(folder, asked, allow_dirty=options["allow_dirty"])
            return report, "is up to date."
