"""Submit a release to a running API server, and leave nothing behind.

All writes are dry runs, with one exception: if allowed, CRDs that are not installed are created and
then removed again.  Existing CRDs are never changed.
"""

from __future__ import annotations

import http.client
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from capsmith.clusters.processes.kube import APPLY_PATCH, JSON, ApiError, KubeClient, StaleError
from capsmith.clusters.processes.wait import NotYet, eventually
from capsmith.errors import CapsmithError
from capsmith.judge.release.live import (
    VERBS,
    AccessAnswer,
    Answers,
    CrdAnswer,
    ObjectAnswer,
    Questions,
    read_conditions,
)
from capsmith.manifests.crds import Crd
from capsmith.manifests.parse import Manifest, list_of, mapping_of, text_of

# The field manager and annotation of dry runs by core's topology controller, which guards of
# templates must let pass (IM-14).
FIELD_MANAGER = "capi-topology"
DRY_RUN_ANNOTATION = "topology.cluster.x-k8s.io/dry-run"
INSTALLED_BY = "capsmith.dev/installed-by"
"""Annotation on CRDs that are installed only for a review. The value identifies the review."""
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_CORE_NAMESPACE, _CORE_ACCOUNT = "capi-system", "capi-manager"
_CORE_LABEL = "cluster.x-k8s.io/provider=cluster-api"
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_REFUSALS = (400, 409, 422)
_NO_TYPE = "failed to create typed patch object"
"""Text in a 500 response for an applied object with a field that the schema lacks."""
_ESTABLISHED_SECONDS = 60.0


class Unreachable(CapsmithError):
    """Raised if the API server does not respond or rejects the user's credentials."""

    def __init__(self, message: str) -> None:
        super().__init__(
            "api-server", message, hint="Check the kubeconfig and the permissions of its user."
        )


@dataclass
class Review:
    """Submits a release to one running API server, for `capsmith verify --live`."""

    client: KubeClient
    install: bool = False
    """Whether to install missing CRDs for the duration of the review."""
    _name: str = field(default_factory=lambda: uuid.uuid4().hex)
    _unanswered: list[str] = field(default_factory=list)

    def ask(self, questions: Questions) -> Answers:
        """Submit the selected parts of the release to the API server, and return its responses.

        Raises Unreachable if the API server does not respond or rejects the user's credentials.
        """
        questions = self._without_odd_names(questions)
        try:
            self.client.require_api_server()
            crds, installed = self._dry_runs(questions.crds)
            access = tuple(
                self._access([c for c in questions.used if c.manifest.name in installed])
            )
            missing = [crd for crd in questions.crds if crd.manifest.name not in installed]
            refused = {answer.manifest.name for answer in crds if answer.refusal}
            with self._installed([crd for crd in missing if crd.manifest.name not in refused]):
                conditions = {crd.manifest.name: self._conditions(crd) for crd in questions.crds}
                answered = [a._replace(conditions=conditions[a.manifest.name]) for a in crds]
                objects = [a for m in questions.objects for a in self._applied(m)]
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"the API server does not respond: {error}") from error
        except ApiError as error:
            raise Unreachable(str(error)) from error
        return Answers(tuple(answered), tuple(objects), access, tuple(self._unanswered))

    def _without_odd_names(self, questions: Questions) -> Questions:
        """Return the questions about objects whose names are safe in a URL; note the others."""
        odd = [
            *(crd.manifest for crd in questions.crds if not _is_plain(crd.manifest, crd.plural)),
            *(manifest for manifest in questions.objects if not _is_plain(manifest)),
        ]
        self._unanswered += [f"{manifest}: the name cannot be part of a URL" for manifest in odd]
        left = {id(manifest) for manifest in odd}
        return Questions(
            tuple(crd for crd in questions.crds if id(crd.manifest) not in left),
            tuple(manifest for manifest in questions.objects if id(manifest) not in left),
            tuple(crd for crd in questions.used if id(crd.manifest) not in left),
        )

    def _dry_runs(self, crds: tuple[Crd, ...]) -> tuple[list[CrdAnswer], set[str]]:
        """Return the answers to a dry run of each CRD, and the names of the CRDs that exist."""
        answers, installed = [], set()
        for crd in crds:
            name, document = crd.manifest.name, dict(crd.manifest.document)
            current = self._current(name)
            if current is None:
                refusal = self._refusal(crd.manifest, "POST", _CRDS, document)
            else:
                installed.add(name)
                # An update needs the version that it replaces, and a dry run of an apply would
                # merge instead.
                version = mapping_of(current, "metadata").get("resourceVersion")
                metadata = {**mapping_of(document, "metadata"), "resourceVersion": version}
                path = f"{_CRDS}/{name}"
                refusal = self._refusal(
                    crd.manifest, "PUT", path, {**document, "metadata": metadata}
                )
            answers.append(CrdAnswer(crd.manifest, refusal or ""))
        return answers, installed

    def _refusal(self, manifest: Manifest, method: str, path: str, body: JSON) -> str | None:
        """Return the error message of a dry run, which is empty if the dry run succeeds.

        Returns None, and adds a note, if there is no answer.
        """
        try:
            self.client.request(method, path, body=body, query={"dryRun": "All"})
        except ApiError as error:
            return self._judged(manifest, error)
        return ""

    def _judged(self, manifest: Manifest, error: ApiError) -> str | None:
        # Other errors, such as a missing permission, say nothing about the object.
        if error.status in _REFUSALS or _NO_TYPE in error.message:
            return error.message
        self._unanswered.append(f"{manifest}: {error.message}")
        return None

    def _current(self, name: str) -> JSON | None:
        try:
            return self.client.request("GET", f"{_CRDS}/{name}")
        except StaleError:
            return None

    def _conditions(self, crd: Crd) -> Any:
        current = self._current(crd.manifest.name)
        return read_conditions(current) if current else ()

    @contextmanager
    def _installed(self, crds: list[Crd]) -> Iterator[None]:
        """Install CRDs, if allowed, and remove them when the context ends."""
        if crds and not self.install:
            names = ", ".join(sorted(crd.kind for crd in crds))
            self._unanswered.append(
                f"{names}: not installed; --install-crds installs them temporarily"
            )
        begun: list[Crd] = []
        try:
            for crd in crds if self.install else ():
                # Noted before the request, because even a request without a response may have
                # created the CRD.
                begun.append(crd)
                self.client.request("POST", _CRDS, body=self._marked(crd))
            for crd in begun:
                self.wait_decided(crd.manifest.name)
            yield
        finally:
            for crd in begun:
                self._remove(crd.manifest.name)

    def _marked(self, crd: Crd) -> JSON:
        metadata = dict(crd.manifest.mapping("metadata"))
        annotations = {**mapping_of(metadata, "annotations"), INSTALLED_BY: self._name}
        return {**crd.manifest.document, "metadata": {**metadata, "annotations": annotations}}

    def _is_decided(self, name: str) -> bool:
        """Return whether a CRD is established and served, or never will be."""
        current = self._current(name)
        if current is None:
            raise NotYet("it does not exist")
        status = {each.type: each.status for each in read_conditions(current)}
        # The names conflict with another CRD's, and waiting would not change that.
        if status.get("NamesAccepted") == "False":
            return True
        if status.get("Established") != "True":
            raise NotYet(f"its conditions are {status}")
        # The condition is set shortly before the API server serves the kind, so discovery decides.
        version = next(v["name"] for v in current["spec"]["versions"] if v["served"])
        group, kind = current["spec"]["group"], current["spec"]["names"]["kind"]
        try:
            self.client.request("GET", self.client.path(f"{group}/{version}", kind))
        except LookupError as error:
            raise NotYet(str(error)) from error
        return True

    def _remove(self, name: str) -> None:
        """Remove a CRD if this review created it; another CRD of the same name stays."""
        current = self._current(name)
        metadata = mapping_of(current, "metadata")
        if text_of(metadata, "annotations", INSTALLED_BY) != self._name:
            return
        # By uid, because a user may have replaced the CRD with another one after it was read.
        preconditions = {"preconditions": {"uid": metadata["uid"]}}
        try:
            self.client.request("DELETE", f"{_CRDS}/{name}", body=preconditions)
        except StaleError:
            return
        self.wait_removed(name)

    def wait_decided(self, name: str) -> None:
        """Wait until a CRD is either established and served, or permanently rejected.

        Raises TimeoutError if neither happens in time.
        """
        what = f"a decision on {name}"
        eventually(lambda: self._is_decided(name), timeout=_ESTABLISHED_SECONDS, what=what)

    def wait_removed(self, name: str) -> None:
        """Wait until a CRD no longer exists.

        Raises TimeoutError if it still exists after the timeout.
        """
        eventually(lambda: self._current(name) is None, what=f"the removal of {name}")

    def _applied(self, manifest: Manifest) -> Iterator[ObjectAnswer]:
        """Yield the answer to an apply in the manner of core's topology controller, if any."""
        document = dict(manifest.document)
        metadata = dict(mapping_of(document, "metadata"))
        api_version, name = text_of(document, "apiVersion"), text_of(metadata, "name")
        namespace = text_of(metadata, "namespace") or "default"
        annotations = {**mapping_of(metadata, "annotations"), DRY_RUN_ANNOTATION: ""}
        document["metadata"] = {**metadata, "namespace": namespace, "annotations": annotations}
        # The topology controller never applies a status.
        document.pop("status", None)
        query = {"fieldManager": FIELD_MANAGER, "force": "true", "dryRun": "All"}
        try:
            path = self.client.path(api_version, manifest.kind, name, namespace)
            applied = self.client.request(
                "PATCH", path, body=document, content_type=APPLY_PATCH, query=query
            )
        except (StaleError, LookupError) as error:
            self._unanswered.append(f"{manifest}: {error}")
        except ApiError as error:
            refusal = self._judged(manifest, error)
            if refusal is not None:
                yield ObjectAnswer(manifest, refusal)
        else:
            yield ObjectAnswer(manifest, applied=applied)

    def _access(self, crds: list[Crd]) -> Iterator[AccessAnswer]:
        """Yield the verbs that core lacks on installed kinds."""
        account = self._core_account() if crds else None
        if crds and account is None:
            self._unanswered.append("the permissions of core: core is not installed")
        for crd in crds if account else ():
            namespace, name = account or ("", "")
            denied = tuple(v for v in VERBS if not self._may(namespace, name, crd, v))
            yield AccessAnswer(crd, f"ServiceAccount {namespace}/{name}", denied)

    def _core_account(self) -> tuple[str, str] | None:
        """Return namespace and name of core's ServiceAccount, or None if core is not installed."""
        query = {"labelSelector": _CORE_LABEL}
        found = self.client.request("GET", "/apis/apps/v1/deployments", query=query)
        # The label is on all of core's objects that clusterctl installs; the manager is the only
        # Deployment.
        for deployment in list_of(found, "items"):
            namespace = text_of(deployment, "metadata", "namespace")
            account = text_of(deployment, "spec", "template", "spec", "serviceAccountName")
            return namespace, account or "default"
        path = f"/api/v1/namespaces/{_CORE_NAMESPACE}/serviceaccounts/{_CORE_ACCOUNT}"
        try:
            self.client.request("GET", path)
        except StaleError:
            return None
        return _CORE_NAMESPACE, _CORE_ACCOUNT

    def _may(self, namespace: str, name: str, crd: Crd, verb: str) -> bool:
        # A review considers only the groups that it lists, and bindings may refer to any of these.
        groups = ["serviceaccounts", f"serviceaccounts:{namespace}", "authenticated"]
        body: Mapping[str, Any] = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": f"system:serviceaccount:{namespace}:{name}",
                "groups": [f"system:{group}" for group in groups],
                "resourceAttributes": {"group": crd.group, "resource": crd.plural, "verb": verb},
            },
        }
        answer = self.client.request("POST", _REVIEWS, body=dict(body))
        return mapping_of(answer, "status").get("allowed") is True


def _is_plain(manifest: Manifest, *more: str) -> bool:
    """Return whether the object's names and ``more`` contain no characters special in URLs."""
    api_version = text_of(manifest.document, "apiVersion")
    namespace = text_of(manifest.document, "metadata", "namespace") or "default"
    parts = (manifest.name, namespace, *api_version.split("/"), *more)
    return len(api_version.split("/")) <= 2 and all(map(_PLAIN.fullmatch, parts))
