"""``python -m website.field [--date DAY] FOLDER`` renews ``releases.json``."""

from __future__ import annotations

from pathlib import Path

import click

from website.field.judging import judge_releases
from website.field.model import (
    RELEASES,
    find_outdated,
    load_providers,
    load_releases,
    load_reviews,
    render_releases,
)


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--date", "day", required=True, help="Day of the judgement, as in 2026-11-26.")
def main(folder: Path, day: str) -> None:
    """Judge the newest release of each provider in FOLDER.

    Releases of providers that FOLDER does not have remain as they are.  Reviews that no release
    needs any longer are listed.
    """
    providers = load_providers()
    known = {provider.repository for provider in providers}
    releases = {each.repository: each for each in load_releases() if each.repository in known}
    releases |= {each.repository: each for each in judge_releases(folder, providers, day)}
    RELEASES.write_text(render_releases(list(releases.values())), encoding="utf-8")
    for line in find_outdated(load_reviews(), list(releases.values())):
        click.echo(f"outdated review: {line}", err=True)


if __name__ == "__main__":
    main()
