"""Access to HTTP paths of the manager, as the management cluster's RBAC grants it.

A client authenticates with a bearer token (TokenReview), and needs the permission for the path
(SubjectAccessReview), as with controller-runtime's ``WithAuthenticationAndAuthorization``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from capsmith_runtime.kube.client import KubeClient, ResourceType
from capsmith_runtime.kube.clock import monotonic

_TOKEN_REVIEW: Final = ResourceType(
    "authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False
)
_ACCESS_REVIEW: Final = ResourceType(
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False
)
GRANTED_SECONDS: Final = 60.0
"""How long a revoked token or permission may still be accepted."""
DENIED_SECONDS: Final = 10.0
CACHE_ENTRIES: Final = 256
"""Clients can send any number of different tokens."""


class AccessReviewer:
    """Asks the API server, and remembers its decisions for a short time."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._decisions: dict[str, tuple[float, HTTPStatus]] = {}
        """Status and time of expiry by digest: tokens are not kept."""

    async def review(self, authorization: str, method: str, path: str) -> HTTPStatus:
        """Return OK, UNAUTHORIZED or FORBIDDEN for the value of an Authorization header.

        Raises ApiError if the API server makes no decision.
        """
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return HTTPStatus.UNAUTHORIZED
        verb = method.lower()
        key = hashlib.sha256(f"{verb}\n{path}\n{token}".encode()).hexdigest()
        expires, status = self._decisions.get(key, (0.0, HTTPStatus.UNAUTHORIZED))
        if expires > monotonic():
            return status
        status = await self._decide(token, verb, path)
        self._remember(key, status)
        return status

    async def _decide(self, token: str, verb: str, path: str) -> HTTPStatus:
        token_review = _review(_TOKEN_REVIEW, {"token": token})
        found = (await self._client.create(_TOKEN_REVIEW, token_review)).get("status") or {}
        if found.get("authenticated") is not True:
            return HTTPStatus.UNAUTHORIZED
        user = found.get("user") or {}
        spec = {
            "user": user.get("username", ""),
            **{name: user[name] for name in ("uid", "groups", "extra") if name in user},
            "nonResourceAttributes": {"path": path, "verb": verb},
        }
        access_review = _review(_ACCESS_REVIEW, spec)
        decision = (await self._client.create(_ACCESS_REVIEW, access_review)).get("status") or {}
        return HTTPStatus.OK if decision.get("allowed") is True else HTTPStatus.FORBIDDEN

    def _remember(self, key: str, status: HTTPStatus) -> None:
        seconds = GRANTED_SECONDS if status is HTTPStatus.OK else DENIED_SECONDS
        self._decisions.pop(key, None)
        self._decisions[key] = (monotonic() + seconds, status)
        while len(self._decisions) > CACHE_ENTRIES:
            del self._decisions[next(iter(self._decisions))]


def _review(resource: ResourceType, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {},
        "spec": dict(spec),
    }
