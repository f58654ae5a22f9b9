"""The command `import`: convert an existing provider's CRDs to a provider.yaml."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from capsmith.commands.load import load, load_contracts, load_text
from capsmith.errors import Refused, UnreadableInput
from capsmith.findings import Finding, Location, Severity
from capsmith.importing.author_code import find_author_code
from capsmith.importing.former_crds import convert_crd
from capsmith.importing.importer import (
    Imported,
    ImportedCrd,
    compare_provider,
    has_own_kind,
    import_crds,
)
from capsmith.importing.outline import find_provider_name, guess_provider_name
from capsmith.importing.report import (
    collect_facts,
    find_malformed,
    find_missing_schemas,
    report_differences,
    summarize,
)
from capsmith.importing.source import SourceCrd, find_foreign, read_sources
from capsmith.manifests.kustomize import KUSTOMIZATION_FILES, REFERENCES, build
from capsmith.manifests.parse import MAX_CHARACTERS, Manifest, read_substituted, texts_of
from capsmith.progress import track
from capsmith.report import Report
from capsmith.workspace.files import create_file
from capsmith.workspace.hold import convert_disk_errors
from capsmith.workspace.reading import (
    Limit,
    find_chart_templates,
    find_test_files,
    find_yaml_files,
    read_document,
)

_CRD = "CustomResourceDefinition"
_LIMIT = Limit(20_000, "input-too-large", "Specify the folder of the CRDs.")


class ImportOptions(NamedTuple):
    """Settings in a new provider.yaml that `capsmith import` cannot read from the CRDs."""

    name: str = ""
    repository: str = ""
    roles: Mapping[str, str] = {}
    """Roles by kind, for kinds whose names suggest the wrong role."""
    partial: bool = False
    """Whether to accept that provider.yaml cannot express everything in the CRDs."""
    dry_run: bool = False
    """Whether to report only, and write nothing."""


class ImportResult(NamedTuple):
    """An import's report, its facts as JSON data, and a one-line summary."""

    report: Report
    facts: dict[str, Any]
    summary: str


def import_provider(paths: Sequence[Path], output: Path, options: ImportOptions) -> ImportResult:
    """Write a provider.yaml that describes the CRDs in ``paths`` to ``output``.

    Everything is decided before the file is written, and an existing file is never replaced.
    Raises Refused if ``output`` exists, even in a dry run, UnreadableInput if a file cannot be
    read, and DiskError if the write fails.
    """
    if os.path.lexists(output):
        raise _make_refusal(output)
    sources, manifests, found = _read(paths, options)
    if not sources:
        return _result(found, ())
    names = _choose_names(sources, manifests, output, options, found)
    contracts = {contract.version: contract for contract in load_contracts()}
    imported = import_crds(sources, _select_metadata(manifests), names, contracts)
    found += _report_import(imported, output, options)
    if not options.dry_run:
        _write(output, imported.text)
    return _result(found, imported.crds)


def _report_import(imported: Imported, output: Path, options: ImportOptions) -> Iterator[Finding]:
    """Yield what the CRDs lose, and what their author must correct or write."""
    for series, (former, contract) in imported.corrected.items():
        yield Finding(
            "import-series",
            f"metadata.yaml has {former} for {series}, but the CRDs follow {contract}",
            Location(str(output)),
            Severity.WARNING,
            "Correct `releases` in the file if the labels of the CRDs are wrong.",
        )
    if not imported.has_machines:
        yield Finding(
            "import-machines",
            "no CRD is of a kind of machines, so the file has `machines: false`",
            Location(str(output)),
            Severity.INFO,
            "If one is missing, import it, too, or correct its role with --role.",
        )
    for each in report_differences(imported.crds, imported.refusals):
        # Additions need no action by the author, and every provider has dozens of them; --check
        # lists them.
        if each.id != "import-added":
            yield _tolerated(each) if options.partial else each
    loaded = load_text(imported.text, str(output))
    yield from (each for each in loaded.findings if each.severity is Severity.ERROR)
    if loaded.provider is not None and loaded.document is not None:
        paths = {each.crd.kind: each.path for each in imported.crds if has_own_kind(each)}
        key = loaded.document.key
        yield from find_author_code(loaded.provider, lambda kind: key(paths.get(kind, ())))


def _choose_names(
    sources: Sequence[SourceCrd],
    manifests: Sequence[Manifest],
    output: Path,
    options: ImportOptions,
    found: list[Finding],
) -> tuple[str, str]:
    """Return the provider's name and repository; add a warning to ``found`` for each guess.

    Raises UnreadableInput if nothing names the provider.
    """
    location = Location(str(output))
    name = options.name or find_provider_name(sources)
    if not name:
        name = guess_provider_name(manifests)
        if not name:
            hint = "Add --name, such as acme."
            raise UnreadableInput("import-name", "the CRDs do not name their provider", hint=hint)
        message = f"the CRDs do not name their provider; {name}, after its namespace, is a guess"
        hint = "Correct it in the file, or use --name."
        found.append(Finding("import-name", message, location, Severity.WARNING, hint))
    repository = options.repository
    if not repository:
        repository = f"https://github.com/{name}/cluster-api-provider-{name}"
        hint = "Correct it in the file, or use --repository."
        message = f"the CRDs do not name the repository; {repository} is a guess"
        found.append(Finding("import-repository", message, location, Severity.WARNING, hint))
    return name, repository


def _select_metadata(manifests: Sequence[Manifest]) -> tuple[Manifest, ...]:
    # clusterctl identifies the file by its name; some of these files have no kind.
    return tuple(
        each
        for each in manifests
        if each.kind == "Metadata" or Path(each.file).name == "metadata.yaml"
    )


def check_provider(paths: Sequence[Path], spec: Path, options: ImportOptions) -> ImportResult:
    """Compare the CRDs in ``paths`` with those that ``spec`` generates, without writing anything.

    Raises UnreadableInput if a file cannot be read.
    """
    sources, _, found = _read(paths, options)
    if not sources:
        return _result(found, ())
    loaded = load(spec)
    if loaded.provider is None:
        return _result([*found, *loaded.findings], ())
    crds = compare_provider(sources, loaded.provider)
    findings = [*found, *report_differences(crds)]
    if options.partial:
        findings = [_tolerated(each) for each in findings]
    return _result(findings, crds)


def _result(findings: Sequence[Finding], crds: Sequence[ImportedCrd]) -> ImportResult:
    report = Report().with_findings(tuple(findings))
    return ImportResult(report, collect_facts(crds), summarize(crds))


def _read(
    paths: Sequence[Path], options: ImportOptions
) -> tuple[tuple[SourceCrd, ...], tuple[Manifest, ...], list[Finding]]:
    """Return the provider's CRDs, the other manifests as written, and the findings on the files.

    The CRDs are empty if any CRD is malformed.  Raises UnreadableInput if the files contain no CRDs
    of a provider.
    """
    manifests: list[Manifest] = []
    findings: list[Finding] = []
    files, notes = _files(paths)
    findings += notes
    templates = set(find_chart_templates(files, files))
    for file in track("reading file", files):
        text = read_document(file, limit=4 * MAX_CHARACTERS)
        if not _is_needed(file, text):
            continue
        # Variables are kept: text that clusterctl would replace is data here.
        read, problems = read_substituted(text, str(file), text)
        manifests += read
        # Of other files only the name of a Namespace is read; they may be templates, too.
        if _has_definitions(file, text) and file not in templates:
            findings += problems
    crds = [convert_crd(each) for each in build(manifests) if each.kind == _CRD]
    malformed = find_malformed(crds)
    if malformed:
        return (), (), malformed
    sources = read_sources(crds, options.roles, load_contracts()[-1])
    malformed = find_missing_schemas(crd for source in sources for crd in source.all)
    if malformed:
        return (), (), malformed
    for foreign in find_foreign(crds, sources):
        hint = "If it belongs to the provider, add --role KIND=Resource."
        message = f"{foreign.name} is skipped: it has no provider label"
        found = Finding("import-foreign", message, foreign.location, Severity.INFO, hint)
        findings.append(found)
    if not sources:
        raise _make_missing(paths[0], manifests)
    return sources, tuple(manifests), findings


def _make_missing(path: Path, manifests: Sequence[Manifest]) -> UnreadableInput:
    """Return the error for a source without CRDs, with a path that only a build creates, if any."""
    hint = "Specify a components file, or a folder with CRDs."
    for file, missing in islice(_find_missing_paths(manifests), 1):
        hint = f"Generate {missing} first, which {file} lists, or specify a components file."
    message = "no CRDs of a provider found"
    return UnreadableInput("import-nothing", message, file=str(path), hint=hint)


def _find_missing_paths(manifests: Sequence[Manifest]) -> Iterator[tuple[str, str]]:
    """Yield kustomizations, each with a local path that it lists and that does not exist."""
    for manifest in manifests:
        file = Path(manifest.file)
        if file.name in KUSTOMIZATION_FILES:
            for each in (name for key in REFERENCES for name in texts_of(manifest.document, key)):
                # Others are in remote repositories.
                if each.startswith(".") and not (file.parent / each).exists():
                    yield manifest.file, each


def _files(paths: Sequence[Path]) -> tuple[list[Path], list[Finding]]:
    """Return the files to read, and findings on those that are left out because they are tests."""
    files: list[Path] = []
    findings: list[Finding] = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        found = list(find_yaml_files(path, _LIMIT, KUSTOMIZATION_FILES))
        tests = find_test_files(path, found)
        files += [each for each in found if each not in tests]
        if tests:
            folders = ", ".join(sorted(set().union(*tests.values())))
            message = f"files in folders called {folders} are left out: {len(tests)}"
            hint = "Specify such a folder as well if its CRDs belong to the provider."
            location = Location(str(path))
            findings.append(Finding("import-tests", message, location, Severity.INFO, hint))
    return files, findings


def _is_needed(file: Path, text: str) -> bool:
    return _has_definitions(file, text) or "kind: Namespace" in text


def _has_definitions(file: Path, text: str) -> bool:
    """Return whether a file may have CRDs, lists of files or release series."""
    return _CRD in text or file.name in (*KUSTOMIZATION_FILES, "metadata.yaml")


def _write(output: Path, text: str) -> None:
    with convert_disk_errors(output):
        try:
            create_file(output, text.encode())
        except FileExistsError as error:
            raise _make_refusal(output) from error


def _make_refusal(output: Path) -> Refused:
    return Refused(
        "import-exists",
        "the file already exists",
        file=str(output),
        hint="Specify another one with -o, or compare with --check.",
    )


def _tolerated(finding: Finding) -> Finding:
    if finding.id == "import-lost":
        return finding._replace(severity=Severity.WARNING)
    return finding
