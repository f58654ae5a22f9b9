"""The validated command line for ``capsmith update``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

if TYPE_CHECKING:
    from capsmith.commands.plan import UpdateOptions
    from capsmith.provider_upgrade.request import UpgradeRequest


class UpdateMode(StrEnum):
    """A mode of ``capsmith update``. Each mode except ``UPDATE`` corresponds to one option."""

    UPDATE = ""
    CHECK = "check"
    PREVIEW = "dry_run"
    RESUME = "resume"
    ABORT = "abort"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateArguments:
    """The command line for ``capsmith update``. Attributes are named after the options."""

    check: bool
    dry_run: bool
    diff: bool
    resume: bool
    abort: bool
    style: str
    force: bool
    restore: tuple[str, ...]
    mine: tuple[str, ...]
    not_mine: tuple[str, ...]
    contract: str | None
    api_version: str | None
    keep_api_version: bool
    drop_api_version: tuple[str, ...]
    release: str | None
    runtime: Literal["vendored", "package"] | None
    blueprints: Path | None
    no_blueprints: bool
    allow_dirty: bool

    @property
    def mode(self) -> UpdateMode:
        """Return the mode.  ``--diff`` selects a preview unless it is combined with ``--check``.

        Raises UsageError for options that exclude each other.
        """
        modes = [mode for mode in UpdateMode if mode and getattr(self, mode)]
        if len(modes) > 1 or (
            self.diff and modes and modes[0] in (UpdateMode.RESUME, UpdateMode.ABORT)
        ):
            raise click.UsageError("--check, --dry-run, --continue and --abort exclude each other.")
        if self.runtime and modes and modes[0] is not UpdateMode.PREVIEW:
            raise click.UsageError("--check, --continue and --abort cannot change the runtime.")
        if modes:
            return modes[0]
        return UpdateMode.PREVIEW if self.diff else UpdateMode.UPDATE

    @property
    def changes_spec(self) -> bool:
        """Return whether any option also changes provider.yaml."""
        named = (self.contract, self.api_version, self.release)
        flagged = self.keep_api_version or bool(self.drop_api_version)
        return flagged or any(value is not None for value in named)

    @property
    def differs_from_last_run(self) -> bool:
        """Return whether any option could produce output that differs from the last run's."""
        lists = self.restore or self.mine or self.not_mine
        return bool(lists) or self.diff or self.no_blueprints

    def options(self) -> UpdateOptions:
        """Return the options of the update itself, without those that change provider.yaml."""
        from capsmith.commands.plan import UpdateOptions
        from capsmith.merging.shared_file import ConflictStyle

        return UpdateOptions(
            style=ConflictStyle(self.style),
            force=self.force,
            restore=frozenset(self.restore),
            mine=frozenset(self.mine),
            not_mine=frozenset(self.not_mine),
            diff=self.diff,
            runtime=self.runtime,
            blueprints=self.blueprints,
            no_blueprints=self.no_blueprints,
            allow_dirty=self.allow_dirty,
        )

    def request(self) -> UpgradeRequest:
        """Return the change to provider.yaml that the options request.

        Raises UsageError for options that exclude each other.
        """
        from capsmith.provider_upgrade.request import UpgradeRequest

        self._check_request()
        names = (name.strip() for name in (self.contract or "").split(","))
        return UpgradeRequest(
            contracts=tuple(dict.fromkeys(name for name in names if name)),
            api_version=self.api_version or "",
            keep_api_version=self.keep_api_version,
            drop=self.drop_api_version,
            release=self.release or "",
        )

    def _check_request(self) -> None:
        if self.mode not in (UpdateMode.UPDATE, UpdateMode.PREVIEW):
            raise click.UsageError("--check, --continue and --abort cannot change the contract.")
        if self.runtime:
            raise click.UsageError("--runtime excludes a change of contracts or API versions.")
        if self.contract is not None and not self.contract.strip(", "):
            raise click.UsageError("--contract requires contracts, such as v1beta1,v1beta2.")
        if bool(self.contract) == bool(self.drop_api_version):
            raise click.UsageError("--contract and --drop-api-version exclude each other.")
        if self.api_version and self.keep_api_version:
            raise click.UsageError("--api-version and --keep-api-version exclude each other.")
        if not self.contract and (self.api_version or self.keep_api_version):
            raise click.UsageError("--api-version and --keep-api-version require --contract.")
