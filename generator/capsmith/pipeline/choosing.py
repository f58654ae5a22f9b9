"""What the options of `capsmith update` ask for.  Imports the whole way only when it is gone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capsmith.pipeline.memory import still_up_to_date
from capsmith.report import Report

if TYPE_CHECKING:
    from capsmith.pipeline.engine import Asked


def run_update(
    folder: Path,
    mode: str,
    *,
    style: str,
    restore: Iterable[str],
    mine: Iterable[str],
    not_mine: Iterable[str],
    **options: Any,
) -> tuple[Report, str]:
    """The report, and the closing words when the answer is yes.

    ``mode`` is ``check``, ``dry_run``, ``resume``, ``abort``, or empty; the options are named as
    those of the command.  Raises what :mod:`capsmith.pipeline.updating` raises.
    """
    changed = (restore, mine, not_mine, options["diff"], options["no_blueprints"])
    if mode == "check" and not any(changed):
        report = still_up_to_date(folder, options["blueprints"])
        if report is not None:
            return report, "is up to date."

    from capsmith.pipeline import updating

    asked = _asked(style, restore, mine, not_mine, options)
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


def run_upgrade(
    folder: Path,
    mode: str,
    said: Mapping[str, Any],
    *,
    style: str,
    restore: Iterable[str],
    mine: Iterable[str],
    not_mine: Iterable[str],
    **options: Any,
) -> tuple[Report, str, dict[str, Any] | None]:
    """As :func:`run_update`, after provider.yaml was changed as ``said`` in options; and the plan.

    ``mode`` is ``dry_run`` or empty.  Raises what :mod:`capsmith.pipeline.upgrading` raises.
    """
    from capsmith.pipeline import upgrading
    from capsmith.provider.upgrade.wish import Wish

    names = (name.strip() for name in (said["contract"] or "").split(","))
    wish = Wish(
        contracts=tuple(dict.fromkeys(name for name in names if name)),
        api_version=said["api_version"] or "",
        keep_api_version=said["keep_api_version"],
        drop=tuple(said["drop_api_version"]),
        release=said["release"] or "",
    )
    asked = _asked(style, restore, mine, not_mine, options)
    only_tell = mode == "dry_run" or asked.diff
    report, facts = upgrading.upgrade(
        folder, wish, asked, allow_dirty=options["allow_dirty"], only_tell=only_tell
    )
    told = "is as it was: this only told what would happen."
    return report, told if only_tell else "is up to date.", facts


def _asked(
    style: str,
    restore: Iterable[str],
    mine: Iterable[str],
    not_mine: Iterable[str],
    options: Mapping[str, Any],
) -> Asked:
    from capsmith.merging.shared_file import Style
    from capsmith.pipeline.engine import Asked

    return Asked(
        Style(style),
        options["force"],
        frozenset(restore),
        frozenset(mine),
        frozenset(not_mine),
        options["diff"],
        options["blueprints"],
        options["no_blueprints"],
    )
