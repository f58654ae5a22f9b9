"""Operations of patches: those that core's webhook takes, and those that it refuses."""

from __future__ import annotations

from typing import Any

_FIELD = "/spec/template/spec/region"
_VALUE = {"valueFrom": {"variable": "region"}}
TAKEN: tuple[dict[str, Any], ...] = (
    {"op": "add", "path": _FIELD, **_VALUE},
    {"op": "add", "path": f"{_FIELD}s/0", "value": "north"},
    {"op": "add", "path": f"{_FIELD}s/00", "value": "north"},
    {"op": "add", "path": f"{_FIELD}s/-", "value": False},
    {"op": "replace", "path": _FIELD, "value": {"a": [1]}},
    {"op": "replace", "path": f"{_FIELD}s/1x", "value": ""},
    {"op": "replace", "path": _FIELD, "valueFrom": {"template": "{{ .region }}"}},
    {"op": "replace", "path": _FIELD, "valueFrom": {"variable": "builtin.cluster.name"}},
    {"op": "add", "path": _FIELD, "valueFrom": {"variable": "builtin.controlPlane.version"}},
    {"op": "remove", "path": _FIELD},
)
REFUSED: tuple[dict[str, Any], ...] = (
    {"op": "copy", "path": _FIELD, **_VALUE},
    {"op": "Add", "path": _FIELD, **_VALUE},
    {"op": "add", "path": "/metadata/labels/a", **_VALUE},
    {"op": "remove", "path": "spec/template"},
    {"op": "add", "path": f"{_FIELD}s/1", **_VALUE},
    {"op": "add", "path": f"{_FIELD}s/2/name", **_VALUE},
    {"op": "add", "path": f"{_FIELD}s/-1", **_VALUE},
    {"op": "replace", "path": f"{_FIELD}s/0", **_VALUE},
    {"op": "replace", "path": f"{_FIELD}s/0/name", **_VALUE},
    {"op": "remove", "path": f"{_FIELD}s/+1"},
    {"op": "add", "path": _FIELD},
    {"op": "add", "path": _FIELD, "value": None},
    {"op": "replace", "path": _FIELD, "value": "north", **_VALUE},
    {"op": "add", "path": _FIELD, "valueFrom": {"template": "a", "variable": "region"}},
    {"op": "add", "path": _FIELD, "valueFrom": {"variable": "builtin.controlplane.version"}},
    {"op": "add", "path": _FIELD, "valueFrom": {"variable": "builtin.machine.name"}},
    {"op": "add", "path": _FIELD, "valueFrom": {"variable": "builtin"}},
    {"op": "replace", "path": _FIELD, "valueFrom": {"variable": "builtin[0]"}},
)
