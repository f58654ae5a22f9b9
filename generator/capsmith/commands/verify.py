"""The command `verify`: check releases, given as files or folders."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from capsmith import resources
from capsmith.commands.load import load_contract_data
from capsmith.contract.load import load_keywords, load_live_rules, load_upgrade_rules
from capsmith.errors import InvalidOption, UnreadableInput
from capsmith.judge.release.kustomized import (
    BuiltFolder,
    BuiltTree,
    build_with_kustomize,
    build_without_kustomize,
    leave_out_parts,
    leave_out_uninstalled,
)
from capsmith.judge.release.live import Answers, Questions, judge_live, prepare_questions
from capsmith.judge.release.model import Ignored, Verdict, VerifyOptions
from capsmith.judge.release.release import (
    ReleaseFiles,
    SourceFile,
    is_components_file,
    is_release_asset,
    read_release,
)
from capsmith.judge.release.settings import (
    find_ended_contract,
    parse_baseline,
    parse_config,
    parse_role,
    parse_target,
    render_baseline,
)
from capsmith.judge.release.targets import Core, list_targets
from capsmith.judge.release.verdict import verify, verify_migration, verify_upgrade
from capsmith.manifests.bundle import EXAMPLE_FOLDERS
from capsmith.manifests.kustomize import KUSTOMIZATION_FILES, Kustomizations
from capsmith.manifests.parse import Manifest
from capsmith.workspace.files import replace_file
from capsmith.workspace.hold import convert_disk_errors
from capsmith.workspace.kustomize import find_kustomize, run_kustomize
from capsmith.workspace.reading import (
    Limit,
    find_chart_templates,
    find_test_files,
    find_yaml_files,
    read_document,
)

MAX_BYTES = 16 * 1024 * 1024
LIMIT = Limit(5_000, "verify-too-much", "Specify the folder with the release.")
_CONFIG = ".capsmith-verify.yaml"


class VerifyRequest(NamedTuple):
    """Command-line options for `capsmith verify`, before parsing."""

    target: str = ""
    roles: tuple[str, ...] = ()
    config: Path | None = None
    """Path to the configuration file. If None, ``.capsmith-verify.yaml`` in the current folder is
    used if it exists."""
    release: str = ""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    advice: bool = False
    baseline: Path | None = None
    write_baseline: Path | None = None
    upgrade: Path | None = None
    """Path to the installed release that is to be replaced; None if no upgrade is checked."""
    live: bool = False
    """Whether to use a running API server's responses as well."""
    kubeconfig: Path | None = None
    context: str = ""
    install_crds: bool = False
    """Whether to install missing CRDs on the API server for the duration of the check."""


def run_verify(paths: Sequence[Path], request: VerifyRequest) -> Verdict:
    """Return the verdict on the release assets in ``paths``.

    Raises UnreadableInput if there is nothing to check or a file cannot be read, and InvalidOption
    for an invalid option.
    """
    data = load_contract_data()
    contracts = {contract.version: contract for contract in data.contracts}
    known = sorted({role for contract in contracts.values() for role in contract.types})
    targets = list_targets(data.supported.core)
    ended = find_ended_contract(request.target, contracts)
    if ended and (request.live or request.upgrade is not None):
        raise InvalidOption(f"{request.target} excludes --live and --upgrade")
    is_chosen = request.target and not ended
    cores = parse_target(request.target, targets) if is_chosen else targets.known
    options = _options(request, cores, known)
    baseline = None
    if request.baseline is not None:
        baseline = parse_baseline(read_document(request.baseline), str(request.baseline))
    release = _release(paths)
    if request.live:
        answers = _answers(request, prepare_questions(release, options, known))
        found = judge_live(release, answers, load_live_rules(resources.schemas()), options)
        verdict = verify(release, contracts, options, baseline, found)
        verdict = replace(verdict, unanswered=answers.unanswered)
    elif ended:
        verdict = verify_migration(release, contracts, ended, options, baseline)
    elif request.upgrade is None:
        verdict = verify(release, contracts, options, baseline)
    else:
        rules = load_upgrade_rules(resources.schemas())
        installed = _release([request.upgrade])
        keywords = load_keywords(resources.schemas())
        verdict = verify_upgrade(installed, release, rules, keywords, options, baseline)
    # The rules for these releases come from their source code; no test has run with them.
    unknown = tuple(core for core in verdict.cores if core not in targets.executed)
    verdict = replace(verdict, from_source=unknown)
    if request.write_baseline is not None:
        with convert_disk_errors(request.write_baseline):
            replace_file(request.write_baseline, render_baseline(verdict.violations).encode())
    return verdict


def _options(request: VerifyRequest, cores: tuple[Core, ...], known: list[str]) -> VerifyOptions:
    """Return the options of the command line and the configuration file."""
    roles: dict[str, str] = {}
    ignored: tuple[Ignored, ...] = ()
    config = request.config or (Path(_CONFIG) if Path(_CONFIG).is_file() else None)
    if config is not None:
        roles, ignored = parse_config(read_document(config), str(config), known)
    roles |= dict(parse_role(text, known) for text in request.roles)
    return VerifyOptions(
        cores,
        roles=roles,
        release=request.release,
        select=_ids(request.select),
        ignore=_ids(request.ignore),
        ignored=ignored,
        advice=request.advice,
    )


def _answers(request: VerifyRequest, asked: Questions) -> Answers:
    """Return the answers of the kubeconfig's API server."""
    # Imported here because only --live needs a client.
    from capsmith.clusters.processes.user_kubeconfig import connect, find_kubeconfigs, read_access
    from capsmith.judge.review import Review

    access = read_access(find_kubeconfigs(request.kubeconfig, os.environ), request.context)
    with connect(access) as client:
        return Review(client, request.install_crds).ask(asked)


def _release(paths: Sequence[Path]) -> ReleaseFiles:
    """Return the release in ``paths``, with the kustomizations of source trees built."""
    chosen = _files(paths)
    release = chosen.release or _build_release(chosen.files)
    built = BuiltTree(release.manifests, release.left_out)
    if chosen.templates:
        texts = {str(each): _read(each) for each in chosen.templates}
        built = leave_out_uninstalled(built, texts)
    release.manifests = built.manifests
    release.left_out = (*chosen.notes, *built.left_out)
    return release


def _build_release(files: Sequence[SourceFile]) -> ReleaseFiles:
    """Return the objects of files, with the kustomizations among them built."""
    release = read_release(files)
    built = _build(files, release)
    release.manifests, release.left_out = built.manifests, built.left_out
    return release


def _build(files: Sequence[SourceFile], release: ReleaseFiles) -> BuiltTree:
    """Return the release's manifests with their kustomizations applied.

    kustomize applies them if it is installed.  Files outside of ``files`` that it reads are added
    to the texts of the release.
    """
    manifests = release.manifests
    if not Kustomizations(manifests).all:
        return leave_out_parts(manifests, release.alone)
    command = find_kustomize()
    if command is None:
        return build_without_kustomize(manifests)
    # kustomize reports real paths; findings should name files as the user did.
    names = {os.path.realpath(file.name): file.name for file in files}

    def run(folder: str) -> BuiltFolder:
        output = run_kustomize(command, Path(folder))
        return BuiltFolder(output.text, partial(name_of, output.folder))

    def name_of(above: Path, path: str) -> str:
        file = os.path.realpath(above / path)
        return names.get(file) or os.path.relpath(file)

    def read(name: str) -> tuple[Manifest, ...]:
        return release.add(SourceFile(name, _read(Path(name)))) if Path(name).is_file() else ()

    return build_with_kustomize(run, read, manifests)


def _ids(texts: Sequence[str]) -> frozenset[str]:
    return frozenset(part.strip() for text in texts for part in text.split(",") if part.strip())


class _Chosen(NamedTuple):
    """The files to judge: those that were named, and the YAML files in folders."""

    files: Sequence[SourceFile]
    notes: Sequence[str]
    """Notes on the files that are left out."""
    templates: Sequence[Path]
    """Templates of Helm charts, which are left out, too."""
    release: ReleaseFiles | None
    """The files with their kustomizations built, if the choice has built them."""


def _files(paths: Sequence[Path]) -> _Chosen:
    """Return the files to judge."""
    files: dict[str, SourceFile] = {}
    left_out: list[str] = []
    templates: list[Path] = []
    release = None
    for path in paths:
        if not path.is_symlink() and path.is_dir():
            found = _in_folder(path)
            left_out += found.notes
            templates += found.templates
            release = found.release if len(paths) == 1 else None
            for each in found.files:
                files.setdefault(str(each), SourceFile(str(each), _read(each)))
        else:
            files.setdefault(str(path), SourceFile(str(path), _read(path), True))
    return _Chosen(list(files.values()), left_out, templates, release)


class _Folder(NamedTuple):
    """The files of a folder that are judged."""

    files: list[Path]
    notes: list[str]
    """Notes on the files that are left out."""
    templates: list[Path]
    """Templates of Helm charts, which are left out, too."""
    release: ReleaseFiles | None = None
    """The files with their kustomizations built, if the choice has built them."""


def _in_folder(folder: Path) -> _Folder:
    """Return the release assets below a folder, or all YAML files if there are none, and notes.

    A folder without release assets is a source tree, and so is one whose components are older than
    what its kustomizations build.  Files of its tests are left out, because among them are releases
    of other providers, and manifests with mistakes; so are the templates of Helm charts, which are
    no YAML.  The notes say which files are left out.
    """
    found = list(find_yaml_files(folder, LIMIT))
    if not found:
        hint = (
            "Specify a folder with components, metadata.yaml or templates, or the files themselves."
        )
        raise UnreadableInput("verify-nothing", "no YAML files found", file=str(folder), hint=hint)
    tests = find_test_files(folder, found)
    kept, notes = [path for path in found if path not in tests], []
    if tests:
        folders = ", ".join(sorted(set().union(*tests.values())))
        notes.append(_note(folder, len(tests), f"folders called {folders}"))
    examples = _find_example_releases(folder, kept)
    if examples:
        kept = [path for path in kept if path not in examples]
        folders = ", ".join(sorted(set(examples.values())))
        notes.append(_note(folder, len(examples), f"folders called {folders}"))
    templates = find_chart_templates(found, kept)
    if templates:
        notes.append(_note(folder, len(templates), "folders called templates of Helm charts"))
        dropped = set(templates)
        kept = [path for path in kept if path not in dropped]
    return _choose_files(folder, _Folder(kept, notes, templates))


def _choose_files(folder: Path, found: _Folder) -> _Folder:
    """Return the release's files among those of a folder, or its sources if there are none.

    So are the sources if the components are the output of a former build of them.
    """
    assets = [path for path in found.files if is_release_asset(str(path))]
    components = [path for path in assets if is_components_file(str(path))]
    if not components:
        return found
    sources = [path for path in found.files if path not in set(components)]
    # Beside a release are other files at times; only sources may be what the user wants to verify.
    if not any(path.name in KUSTOMIZATION_FILES for path in sources):
        return found._replace(files=assets)
    try:
        release = _build_release(_read_files(sources))
    except UnreadableInput:
        release = ReleaseFiles()
    newer = _find_newer_crd(components, release)
    if newer:
        more = f" and {len(components) - 1} more" if len(components) > 1 else ""
        note = f"{components[0]}{more}: the sources build another {newer}; name it to verify it"
        return found._replace(files=sources, notes=[*found.notes, note], release=release)
    places = f"the source tree: remove {components[0]} to verify the sources instead"
    note = _note(folder, len(found.files) - len(assets), places)
    return found._replace(files=assets, notes=[*found.notes, note])


def _find_newer_crd(components: Sequence[Path], release: ReleaseFiles) -> str:
    """Return a CRD of the sources that a components file has with other versions or schemas.

    Empty if one of the components files is up to date.
    """
    made = _list_crds(release.manifests)
    names = [
        {name for name, versions in found.items() if made.get(name, versions) != versions}
        for found in (
            _list_crds(read_release(_read_files([each])).manifests) for each in components
        )
    ]
    return min(set().union(*names)) if all(names) else ""


def _list_crds(manifests: Sequence[Manifest]) -> dict[str, Any]:
    """Return the versions of each CRD among the manifests, by its description."""
    return {
        str(each): each.document["spec"].get("versions")
        for each in manifests
        if each.kind == "CustomResourceDefinition" and each.mapping("spec")
    }


def _read_files(paths: Sequence[Path]) -> list[SourceFile]:
    return [SourceFile(str(each), _read(each)) for each in paths]


def _find_example_releases(folder: Path, files: Sequence[Path]) -> dict[Path, str]:
    """Return the files of releases in folders of examples, with the names of these folders.

    Empty if the tree has no other release, and no kustomization.
    """
    found: dict[Path, str] = {}
    for path in files:
        names = EXAMPLE_FOLDERS.intersection(path.relative_to(folder).parts[:-1])
        if names and (is_components_file(str(path)) or path.name == "metadata.yaml"):
            found[path] = min(names)
    others = (path for path in files if path not in found)
    if any(each.name in KUSTOMIZATION_FILES or is_components_file(str(each)) for each in others):
        return found
    return {}


def _note(folder: Path, count: int, places: str) -> str:
    return f"{folder}: {'1 file' if count == 1 else f'{count} files'} in {places}"


def _read(path: Path) -> str:
    try:
        return read_document(path, MAX_BYTES)
    except UnreadableInput as error:
        error.finding = error.finding._replace(
            hint="Specify a folder with a release, or its files."
        )
        raise
