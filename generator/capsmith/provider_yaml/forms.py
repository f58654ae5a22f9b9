"""Texts of one form, as annotations of the model: checked by pydantic, shown in the JSON Schema.

The forms themselves are those of :mod:`capsmith.safetext`, so what the model accepts can be
printed.  A form knows the id of its finding and the hint for a text that does not match.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from capsmith import safetext
from capsmith.yamldoc.quote import shown


@dataclass(frozen=True, slots=True)
class Form:
    """A regular expression for the whole text, a length limit, and the finding when it fails."""

    id: str
    what: str
    pattern: str
    limit: int
    hint: str

    def check(self, text: str) -> str:
        """Return ``text`` itself.  Raises PydanticCustomError whose type is the finding's id."""
        if len(text) <= self.limit and re.fullmatch(self.pattern, text):
            return text
        long = f" (at most {self.limit} characters)" if len(text) > self.limit else ""
        message = f"{shown(text)} is not {self.what}{long}"
        raise PydanticCustomError(self.id, "{message}", {"message": message, "hint": self.hint})

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        form = {"pattern": f"^({self.pattern})$", "maxLength": self.limit}
        return {"description": self.hint, **handler(schema), **form}


def _safe(id: str, what: str, kind: type[Any], hint: str) -> Form:
    return Form(id, what, kind.form.pattern, kind.limit, hint)


_LABEL_HINT = "lower-case letters, digits and inner hyphens"

_FIELD_NAME = "[A-Za-z][A-Za-z0-9_-]*"

_SPECIFIER = r"(===?|~=|!=|<=?|>=?) ?[A-Za-z0-9.*+!_-]+"

ProviderName = Annotated[
    str, _safe("CC-50", "a provider name", safetext.DnsLabel, f"Use {_LABEL_HINT}.")
]
Label = Annotated[
    str, _safe("spec-not-a-label", "a DNS label", safetext.DnsLabel, f"Use {_LABEL_HINT}.")
]
_NAME = "a DNS label that begins with a letter"
_NAME_HINT = f"Use {_LABEL_HINT}, with a letter first."
CrdName = Annotated[str, _safe("spec-not-a-label", _NAME, safetext.Rfc1035Label, _NAME_HINT)]
Group = Annotated[
    str,
    _safe(
        "CRD-05",
        "an API group",
        safetext.DnsSubdomain,
        "Write a DNS name in lower case, such as infrastructure.acme.example.com.",
    ),
]
Kind = Annotated[
    str,
    _safe(
        "CRD-04",
        "a kind",
        safetext.KindName,
        "Write letters and digits in CamelCase, such as AcmeMachine.",
    ),
]
Version = Annotated[
    str,
    _safe(
        "spec-not-an-api-version",
        "an API version",
        safetext.VersionName,
        "Write a version such as v1alpha1.",
    ),
]
Series = Annotated[
    str,
    _safe(
        "CC-05", "a release series", safetext.SeriesName, "Write v0.1 for v0.1.0, v0.1.1 and so on."
    ),
]
Repository = Annotated[
    str,
    _safe(
        "spec-not-a-repository",
        "the https URL of a repository",
        safetext.RepositoryUrl,
        "Write a URL such as https://github.com/acme/cluster-api-provider-acme.",
    ),
]
Image = Annotated[
    str,
    _safe(
        "CC-27",
        "an image name with a registry and without a tag",
        safetext.ImageName,
        "Write a name such as ghcr.io/acme/cluster-api-acme-controller; the release adds the tag.",
    ),
]
Folder = Annotated[
    str,
    Form(
        "spec-not-a-folder",
        "a folder beside this file",
        f"(?!\\.){safetext.RelativePath.form.pattern}",
        100,
        "Write a path below this folder, with slashes and not hidden, such as blueprints.",
    ),
]
Licence = Annotated[
    str,
    _safe(
        "spec-not-a-licence",
        "an SPDX licence identifier",
        safetext.LicenceId,
        "Write an identifier such as Apache-2.0.",
    ),
]
PackageName = Annotated[
    str,
    Form(
        "package-name",
        "a Python package name",
        "[a-z_][a-z0-9_]*",
        100,
        "Use lower-case letters, digits and underscores, such as cluster_api_provider_acme.",
    ),
]
_MODULE = r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*"
_SDK_HINT = "Write what follows `import`, such as boto3 or google.cloud.compute_v1."
SdkName = Annotated[
    str, Form("sdk-name", "the import name of a Python package", _MODULE, 200, _SDK_HINT)
]
FieldName = Annotated[
    str,
    Form(
        "field-name",
        "a field name",
        _FIELD_NAME,
        63,
        "Use a letter, then letters, digits, `_` and `-`; in paths a dot separates names.",
    ),
]
SecretKey = Annotated[
    str,
    Form(
        "credentials-key",
        "a key of a Secret",
        "(?!\\.\\.?$)[-._a-zA-Z0-9]+",
        253,
        "Use letters, digits, `-`, `_` and `.` only.",
    ),
]
ApiGroupOrCore = Annotated[
    str,
    Form(
        "rbac-api-group",
        'an API group ("" is the core group)',
        f"({safetext.DnsSubdomain.form.pattern})?|\\*",
        253,
        'Write a group such as apps, or "" for pods and secrets.',
    ),
]
RbacResource = Annotated[
    str,
    Form(
        "rbac-resource",
        "a resource",
        "\\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?(/(\\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?))?",
        253,
        "Write the plural in lower case, with its subresource: deployments/scale.",
    ),
]
RbacVerb = Annotated[
    str,
    Form(
        "rbac-verb",
        "a verb",
        "\\*|[a-z]+",
        63,
        "Write a verb such as get, list, watch, create or patch.",
    ),
]
ObjectName = Annotated[
    str,
    _safe("rbac-resource-name", "the name of an object", safetext.DnsSubdomain, _LABEL_HINT),
]
ObjectApiVersion = Annotated[
    str,
    Form(
        "watch-api-version",
        "the apiVersion of a kind",
        f"({safetext.DnsSubdomain.form.pattern}/)?{safetext.VersionName.form.pattern}",
        317,
        "Write a group and a version, such as apps/v1, or v1 for ConfigMaps and Secrets.",
    ),
]
ResourceName = Annotated[
    str,
    _safe(
        "watch-resource",
        "the plural of a kind",
        safetext.DnsLabel,
        "Write it in lower case, as in URLs, such as network-attachment-definitions.",
    ),
]
SpecPath = Annotated[
    str,
    Form(
        "watch-path",
        "the path of a field in the spec",
        rf"spec(\.{_FIELD_NAME})+",
        500,
        "Write the names of the fields with dots, such as spec.sshKeyRef.name.",
    ),
]
ContractField = Annotated[
    str,
    Form(
        "contract-field-path",
        "the path of a field of the contract",
        "metadata|(spec|status)\\.[A-Za-z][A-Za-z0-9]*",
        100,
        "Write the part and the name of the field, such as status.failureReason.",
    ),
]
LabelKey = Annotated[
    str,
    Form(
        "watch-label",
        "the key of a label",
        f"({safetext.DnsSubdomain.form.pattern}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?",
        317,
        "Write a key such as acme.io/machine.",
    ),
]
Requirement = Annotated[
    str,
    Form(
        "dependency",
        "a Python requirement",
        r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(\[[A-Za-z0-9._-]+(, ?[A-Za-z0-9._-]+)*\])?"
        rf"( ?{_SPECIFIER}(, ?{_SPECIFIER})*)?"
        r"""( ?; ?[A-Za-z0-9_.<>=!~'"() ,-]+)?""",
        300,
        "Write name, extras, versions and marker, such as acme-sdk[aio]>=2,<3.",
    ),
]
Line = Annotated[
    str,
    Form(
        "spec-not-a-line",
        "a single line of text without leading or trailing blanks",
        r"\S|\S[^\n]*\S",
        200,
        "Use at most 200 characters.",
    ),
]
Warning = Annotated[
    str,
    Form(
        "spec-not-a-line",
        "a single line of text without leading or trailing blanks",
        r"\S|\S[^\n]*\S",
        256,
        "Use at most 256 characters, the limit of the API server.",
    ),
]
Text = Annotated[
    str,
    Form(
        "spec-not-a-text",
        "a non-blank string",
        r"\s*\S[\s\S]*",
        4000,
        "Write some text of at most 4000 characters.",
    ),
]
