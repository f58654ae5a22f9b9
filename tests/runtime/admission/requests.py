"""A kind with validator and defaulter, and requests of the API server about its objects."""

from __future__ import annotations

import asyncio
import base64
import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from capsmith_runtime.admission.api import (
    AdmissionObject,
    Defaulter,
    FieldError,
    ValidationResult,
    Validator,
)
from capsmith_runtime.admission.controllers import AdmissionHandler
from capsmith_runtime.admission.kinds import AdmittedKind
from capsmith_runtime.admission.reads import ObjectReads
from capsmith_runtime.contract.v1beta2 import CoreV1Beta2
from capsmith_runtime.kube.http_server import Request, Response
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.reconcile.caches import Caches, WatchScope
from capsmith_runtime.reconcile.permissions import Permissions
from capsmith_runtime.testing.fake_api import FakeApi
from capsmith_runtime.testing.manifests import Manifests
from tests.runtime.webhook.json_patch import patched

GROUP = "infrastructure.cluster.x-k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    size: int = field(default=10, metadata={"json": "sizeGiB"})
    type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WidgetSpec:
    size: str
    zone: str | None = None
    root: Disk = field(default_factory=Disk)
    disks: tuple[Disk, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)


class Author(Validator[WidgetSpec], Defaulter[WidgetSpec]):
    """Returns what a test says, and keeps the objects that it received."""

    result: Any = ()
    seen: list[AdmissionObject[WidgetSpec]]

    def validate_create(self, obj: AdmissionObject[WidgetSpec]) -> ValidationResult:
        type(self).seen = [obj]
        return self._result(obj)

    def validate_update(
        self, old: AdmissionObject[WidgetSpec], new: AdmissionObject[WidgetSpec]
    ) -> ValidationResult:
        type(self).seen = [old, new]
        return self._result(new)

    def validate_delete(self, obj: AdmissionObject[WidgetSpec]) -> ValidationResult:
        type(self).seen = [obj]
        return self._result(obj)

    def default(self, obj: AdmissionObject[WidgetSpec]) -> WidgetSpec:
        type(self).seen = [obj]
        found: WidgetSpec = self._answer(obj)
        return found

    def _result(self, obj: AdmissionObject[WidgetSpec]) -> ValidationResult:
        found: ValidationResult = self._answer(obj)
        return found

    def _answer(self, obj: Any) -> Any:
        result = type(self).result
        if isinstance(result, BaseException):
            raise result
        return result(obj) if callable(result) else result


def author(result: Any) -> type[Author]:
    """Return a class with a result of its own: a value, an exception, or a function."""
    return type("WidgetAuthor", (Author,), {"result": result, "seen": []})


def kind(cls: type[Any], **changes: Any) -> AdmittedKind:
    """Return the kind Widget with the author's class."""
    settings: dict[str, Any] = {
        "group": GROUP,
        "kind": "Widget",
        "plural": "widgets",
        "spec": WidgetSpec,
        "validator": cls if issubclass(cls, Validator) else None,
        "defaulter": cls if issubclass(cls, Defaulter) else None,
        "template": "WidgetTemplate",
    }
    return AdmittedKind(**settings | changes)


def widget(spec: Any, name: str = "w", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": spec,
    }


def template(spec: Any) -> dict[str, Any]:
    return widget({"template": {"spec": spec}}) | {"kind": "WidgetTemplate"}


def review(operation: str, new: Any = None, old: Any = None) -> dict[str, Any]:
    """Return the body of a request of the API server."""
    found = new or old or {"kind": "Widget"}
    request = {
        "uid": "7",
        "operation": operation,
        "kind": {"group": GROUP, "version": "v1alpha1", "kind": found["kind"]},
        "object": new,
        "oldObject": old,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def handler_of(
    cls: type[Any], api: Any, permissions: Permissions | None = None, **changes: Any
) -> AdmissionHandler:
    """Return the handler of a manager whose caches are still empty."""
    caches = Caches(api, Metrics(), CoreV1Beta2(), WatchScope())
    reads = ObjectReads(caches, permissions or Permissions())
    return AdmissionHandler(kind(cls, **changes), reads, Metrics(), threads=4)


def send(cls: type[Any], path: str, body: bytes, **changes: Any) -> Response:
    """Return the response to a request with this body; the path is ``validate`` or ``mutate``."""

    async def main() -> Response:
        handler = handler_of(cls, FakeApi("v1beta2", Manifests(())), **changes)
        return await handler.routes[f"/{path}/widgets.{GROUP}"](Request("POST", path, body))

    return asyncio.run(main())


def reviewed(cls: type[Any], path: str, body: Any, **changes: Any) -> dict[str, Any]:
    response = send(cls, path, json.dumps(body).encode(), **changes)
    assert response.status == 200, response.body
    found = json.loads(response.body)
    assert (found["apiVersion"], found["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert found["response"].pop("uid") == "7"
    answer: dict[str, Any] = found["response"]
    return answer


def validated(cls: type[Any], operation: str, *objects: Any, **changes: Any) -> dict[str, Any]:
    return reviewed(cls, "validate", review(operation, *objects), **changes)


def defaulted(cls: type[Any], obj: dict[str, Any], old: Any = None) -> dict[str, Any]:
    """Return the object as it is after the patch in the response."""
    answer = reviewed(cls, "mutate", review("UPDATE" if old else "CREATE", obj, old))
    assert answer["allowed"], answer
    if "patch" not in answer:
        return obj
    assert answer["patchType"] == "JSONPatch"
    operations = json.loads(base64.b64decode(answer["patch"]))
    found: dict[str, Any] = patched(copy.deepcopy(obj), operations)
    return found


def too_large(obj: AdmissionObject[WidgetSpec]) -> list[FieldError]:
    """Return an error for each disk that is too large."""
    return [
        FieldError(f"disks[{index}].sizeGiB", "must be at most 100")
        for index, disk in enumerate(obj.spec.disks)
        if disk.size > 100
    ]
