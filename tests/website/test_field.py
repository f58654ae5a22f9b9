"""The page of the field: release files, their judgement, reviews, and the page that follows."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from website.field import model
from website.field.download import choose_release, download_releases
from website.field.judging import judge_releases
from website.field.model import (
    FieldFinding,
    FieldRelease,
    FieldStep,
    Opinion,
    Origin,
    Provider,
    Record,
    Review,
    load_releases,
    load_reviews,
    render_releases,
)
from website.field.page import field_page, render_page
from website.field.tags import build_releases

ACME = Provider("Acme", "owner/acme", {"infrastructure-components.yaml": "components.yaml"})
METADATA = """apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- {major: 0, minor: 1, contract: v1beta2}
"""
CRD = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: acmeclusters.infrastructure.cluster.x-k8s.io
  labels: {cluster.x-k8s.io/v1beta1: v1alpha1, cluster.x-k8s.io/provider: infrastructure-acme}
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {kind: AcmeCluster, listKind: AcmeClusterList, plural: acmeclusters, singular: acmecluster}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object}
          status: {type: object, properties: {ready: {type: string}}}
"""


def make_release(*findings: FieldFinding, **changes: object) -> FieldRelease:
    release = FieldRelease(
        repository="owner/acme",
        version="v0.1.0",
        record=Record("2026-08-01", Origin.ASSETS, ("download",)),
        judged="2026-08-02",
        capsmith="0.2.0",
        files={},
        series="v1beta2",
        labels=("v1beta1", "v1beta2"),
        cores=("v1.10", "v1.15"),
        steps=3,
        left=(FieldStep("IC-05", "AcmeCluster (InfraCluster)", "replace status.ready"),),
        findings=findings,
    )
    return release._replace(**changes)  # type: ignore[arg-type]


def make_finding(message: str, rule: str = "CRD-20") -> FieldFinding:
    return FieldFinding(
        rule=rule,
        effect="breaks",
        object="CustomResourceDefinition acmeclusters",
        message=message,
        when="",
        consequence="A field is lost.",
        cores=("v1.11", "v1.15"),
        file="infrastructure-components.yaml",
        line=7,
        link="https://example.com/rule",
    )


# The committed data.


def test_the_page_has_what_the_data_have() -> None:
    page = field_page()
    releases = load_releases()
    assert len(releases) > 30
    for release in releases:
        assert f" {release.version}" in page
        assert release.record.problem or f"{release.record.date} | " in page
        assert len(release.judged) == 10
        assert release.record.commands


def test_only_facts_are_on_the_page() -> None:
    facts = [review for review in load_reviews() if review.opinion is Opinion.FACT]
    items = re.findall(r"^- \*\*breaks.*\n  \(\[([A-Z]+-\d+)\]", field_page(), re.MULTILINE)
    covered = [
        finding.rule
        for release in load_releases()
        for finding in release.findings
        if any(each.covers(release.repository, finding.rule, finding.message) for each in facts)
    ]
    assert sorted(items) == sorted(covered)
    assert items


def test_each_review_has_a_reason_and_a_release() -> None:
    known = {provider.repository for provider in model.load_providers()}
    for review in load_reviews():
        assert review.repository in {"", *known}
        assert review.reason.endswith(".")
        assert review.release


def test_no_review_is_outdated() -> None:
    assert model.find_outdated(load_reviews(), load_releases()) == []


def test_the_data_are_in_their_canonical_form() -> None:
    text = model.RELEASES.read_text(encoding="utf-8")
    assert render_releases(load_releases()) == text


# The page.


def test_what_nobody_has_compared_with_the_source_is_not_on_the_page() -> None:
    release = make_release(make_finding("seen"), make_finding("argued"), make_finding("new"))
    reviews = [
        Review("CRD-20", Opinion.FACT, "It is so.", "owner/acme", "v0.1.0", ("seen",)),
        Review("CRD-20", Opinion.ARGUABLE, "It may not be.", "", "v0.1.0", ("argued",)),
    ]
    page = render_page([ACME], [release], reviews)
    assert "seen" in page
    assert "argued" not in page
    assert "new\n" not in page
    assert "| v0.1.0 | 2026-08-01 | v1beta1, v1beta2 | 1 | none | 1 of 3 |" in page


def test_a_condition_of_a_review_replaces_that_of_the_rule() -> None:
    review = Review("CRD-20", Opinion.FACT, "So.", "", "v0.1.0", (), "a user has one")
    page = render_page([ACME], [make_release(make_finding("seen"))], [review])
    assert "| none | 1 | 1 of 3 |" in page
    assert "- **breaks under a condition**, core v1.11 to v1.15: seen\n" in page
    assert "  *When a user has one.*\n" in page


def test_an_arguable_step_is_not_counted() -> None:
    review = Review("IC-05", Opinion.ARGUABLE, "It may not be.")
    page = render_page([ACME], [make_release()], [review])
    assert "No step to contract v1beta2 is left." in page
    assert "| none | none | none |" in page


def test_a_step_that_was_found_to_be_a_fact_is_counted() -> None:
    review = Review("IC-05", Opinion.FACT, "It is so.")
    page = render_page([ACME], [make_release()], [review])
    assert "| none | none | 1 of 3 |" in page


def test_reviews_without_a_finding_are_outdated() -> None:
    release = make_release(make_finding("seen"))

    def review(
        rule: str, *messages: str, version: str = "v0.1.0", of: str = ACME.repository
    ) -> Review:
        return Review(rule, Opinion.FACT, "So.", of, version, messages)

    needed = [review("CRD-20", "seen"), review("CRD-20"), review("IC-05", "replace status.ready")]
    assert model.find_outdated([*needed, review("CRD-20", of="")], [release]) == []
    # What another release said may be said again.
    assert model.find_outdated([review("CRD-20", "gone", version="v0.0.9")], [release]) == []
    outdated = [review("CRD-20", "seen", "gone"), review("CC-11"), review("CC-12", of="")]
    assert model.find_outdated(outdated, [release]) == [
        "CRD-20 owner/acme: gone",
        "CC-11 owner/acme",
        "CC-12",
    ]


def test_what_a_build_from_sources_omits_is_on_the_page() -> None:
    provider = ACME._replace(omitted="the operator")
    release = make_release()
    built = release._replace(record=Record("2026-08-01", Origin.TAG, ("build",)))
    note = "Judged without the operator, which the release includes."
    assert note in render_page([provider], [built], [])
    assert note not in render_page([provider], [release], [])
    assert "Judged without" not in render_page([ACME], [built], [])


def test_texts_of_releases_are_no_markup() -> None:
    hostile = "<script>alert(1)</script> [a](javascript:b) | `c` *d* \x1b[2J\u202e &amp; {x}\n# e"
    record = Record("2026-08-01", Origin.TAG, (), hostile)
    unjudged = make_release(record=record, repository="owner/other")
    other = Provider("Other", "owner/other", {})
    review = Review("CRD-20", Opinion.FACT, "So.")
    page = render_page([ACME, other], [make_release(make_finding(hostile)), unjudged], [review])
    shown = "&#60;script&#62;alert(1)&#60;/script&#62; &#91;a&#93;(javascript:b) &#124; &#96;c&#96;"
    assert page.count(shown) == 2
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "\n# e" not in page


# Release files.


def commit(clone: Path, files: dict[str, str], tag: str) -> None:
    for name, text in files.items():
        (clone / name).write_text(text, encoding="utf-8")
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.com"]
    for arguments in (["add", "."], [*identity, "commit", "-qm", tag], ["tag", tag]):
        subprocess.run(["git", *arguments], cwd=clone, check=True)


@pytest.fixture
def mirrors(tmp_path: Path) -> Path:
    clone = tmp_path / "mirrors" / "owner+acme" / "repo"
    clone.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "."], cwd=clone, check=True)
    commit(clone, {"components.yaml": CRD, "metadata.yaml": METADATA}, "v0.1.0")
    commit(clone, {"components.yaml": "later"}, "v0.2.0-rc.1")
    # A mirror is a bare clone.
    (clone / ".git").rename(clone.parent / "bare")
    return clone.parents[1]


def test_releases_are_built_from_tags_and_judged(tmp_path: Path, mirrors: Path) -> None:
    folder = tmp_path / "releases"
    missing = Provider("Missing", "owner/missing", {})
    problems = build_releases(mirrors, folder, [ACME, missing])
    assert problems == ["owner/missing: no mirror"]

    (release,) = judge_releases(folder, [ACME, missing], "2026-08-02")
    assert (release.version, release.judged) == ("v0.1.0", "2026-08-02")
    assert (release.series, release.labels) == ("v1beta2", ("v1beta1",))
    assert set(release.files) == {"infrastructure-components.yaml", "metadata.yaml"}
    assert "cp source/components.yaml v0.1.0/infrastructure-components.yaml" in (
        release.record.commands
    )
    assert "IC-05" in {step.rule for step in release.left}
    assert 0 < len(release.left) <= release.steps
    (ready,) = (each for each in release.findings if each.rule == "IC-06")
    assert (ready.effect, ready.file) == ("breaks", "infrastructure-components.yaml")
    assert CRD.splitlines()[ready.line - 1].strip().startswith("status:")


def test_a_file_that_a_mirror_lacks_is_left_out(tmp_path: Path, mirrors: Path) -> None:
    clone = mirrors / "owner+acme"
    (clone / "repo" / "large [1].json").write_text("{}", encoding="utf-8")
    (clone / "bare").rename(clone / "repo" / ".git")
    commit(clone / "repo", {}, "v0.1.1")
    lost = ["git", "rev-parse", "v0.1.1:large [1].json"]
    digest = subprocess.run(lost, cwd=clone / "repo", check=True, capture_output=True, text=True)
    (clone / "repo" / ".git").rename(clone / "bare")
    (clone / "bare" / "objects" / digest.stdout[:2] / digest.stdout[2:].strip()).unlink()
    assert build_releases(mirrors, tmp_path / "releases", [ACME]) == []
    assert (tmp_path / "releases/owner/acme/v0.1.1/infrastructure-components.yaml").is_file()


def test_a_judged_release_is_the_same_after_it_was_written(tmp_path: Path, mirrors: Path) -> None:
    build_releases(mirrors, tmp_path / "releases", [ACME])
    releases = judge_releases(tmp_path / "releases", [ACME], "2026-08-02")
    file = tmp_path / "releases.json"
    file.write_text(render_releases(releases), encoding="utf-8")
    assert load_releases(file) == releases
    assert render_releases(load_releases(file)) == render_releases(releases)


def test_a_release_that_cannot_be_read_has_its_reason(tmp_path: Path, mirrors: Path) -> None:
    build_releases(mirrors, tmp_path / "releases", [ACME])
    components = tmp_path / "releases/owner/acme/v0.1.0/infrastructure-components.yaml"
    components.write_bytes(b"\xff\xfe\x00")
    (release,) = judge_releases(tmp_path / "releases", [ACME], "2026-08-02")
    assert release.record.problem
    assert "## Not judged\n\n- Acme v0.1.0: " in render_page([ACME], [release], [])


@pytest.fixture
def github() -> Iterator[str]:
    """Return the address of a server that responds as GitHub does."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            host = f"http://127.0.0.1:{self.server.server_port}"  # type: ignore[attr-defined]
            names = ["infrastructure-components.yaml", "metadata.yaml", "../evil.yaml", "a.tar.gz"]
            assets = [{"name": name, "browser_download_url": f"{host}/{name}"} for name in names]
            common = {"draft": False, "published_at": "2026-08-01T10:00:00Z", "assets": assets}
            listing = [
                {**common, "tag_name": "v0.2.0-rc.1", "prerelease": True},
                {**common, "tag_name": "v0.1.0", "prerelease": False},
                {**common, "tag_name": "v0.0.9", "prerelease": False},
            ]
            answers = {
                "/repos/owner/acme/releases?per_page=100": json.dumps(listing),
                "/infrastructure-components.yaml": CRD,
                "/metadata.yaml": METADATA,
            }
            answer = answers.get(self.path)
            self.send_response(404 if answer is None else 200)
            self.end_headers()
            self.wfile.write((answer or "").encode())

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_releases_are_downloaded(tmp_path: Path, github: str) -> None:
    gone = Provider("Gone", "owner/gone", {})
    (failed,) = download_releases(tmp_path / "releases", [gone, ACME], github)
    assert failed == "owner/gone: HTTP Error 404: Not Found"
    folder = tmp_path / "releases/owner/acme/v0.1.0"
    files = ["infrastructure-components.yaml", "metadata.yaml", "release.json"]
    assert sorted(each.name for each in folder.iterdir()) == files

    (release,) = judge_releases(tmp_path / "releases", [ACME], "2026-08-02")
    assert release.record.origin is Origin.ASSETS
    assert release.record.date == "2026-08-01"
    assert "gh release download v0.1.0 --repo owner/acme" in release.record.commands[0]
    assert not (tmp_path / "releases/owner/acme/evil.yaml").exists()


def test_a_release_without_components_is_none() -> None:
    listing = [
        {
            "tag_name": "v0.1.0",
            "draft": False,
            "prerelease": False,
            "published_at": "2026-08-01T10:00:00Z",
            "assets": [{"name": "metadata.yaml", "browser_download_url": "https://example.com"}],
        }
    ]
    with pytest.raises(ValueError, match=r"v0\.1\.0 has no components"):
        choose_release(ACME, listing)
