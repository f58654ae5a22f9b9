"""Strings that may appear in generated code unchanged.

A blueprint may print only :class:`SafeText` and numbers.  All other user input must pass a literal
filter, which returns :class:`SafeText`.  Input therefore cannot become code, because rendering
fails for a plain ``str``.
"""

from __future__ import annotations

import re
from typing import ClassVar, Self


class SafeText(str):
    """A string that is safe to print at its place in a blueprint."""

    __slots__ = ()


class _Checked(SafeText):
    """A string whose form is checked on creation.

    Raises ValueError for a string of another form.
    """

    __slots__ = ()
    form: ClassVar[re.Pattern[str]]
    limit: ClassVar[int]

    def __new__(cls, text: str) -> Self:
        if len(text) > cls.limit or not cls.form.fullmatch(text):
            raise ValueError(f"{text!r} is no {cls.__name__}")
        return super().__new__(cls, text)


class DnsLabel(_Checked):
    """An RFC 1123 label of at most 63 characters."""

    form = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
    limit = 63


class Rfc1035Label(_Checked):
    """An RFC 1035 label: an RFC 1123 label that begins with a letter."""

    form = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
    limit = 63


class DnsSubdomain(_Checked):
    """An RFC 1123 subdomain of at most 253 characters."""

    form = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
    limit = 253


class FinalizerName(_Checked):
    """A finalizer's name: an RFC 1123 subdomain, optionally followed by a slash and a label.

    The API server accepts at most 63 characters in a name without a slash, and at most 63 after a
    slash.
    """

    form = re.compile(rf"{DnsSubdomain.form.pattern}(/{DnsLabel.form.pattern})?")
    limit = DnsSubdomain.limit + 1 + DnsLabel.limit


class KindName(_Checked):
    """A Kubernetes kind that is also a valid Python class name (CRD-04)."""

    form = re.compile(r"[A-Z][A-Za-z0-9]*")
    limit = 63


class Identifier(_Checked):
    """An ASCII Python identifier. The caller must exclude keywords."""

    form = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
    limit = 255


class ModuleName(_Checked):
    """A Python module's dotted name, in ASCII. The caller must exclude keywords."""

    form = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
    limit = 200


class FieldPath(_Checked):
    """Path of a field in an object, such as ``spec.items[].name``."""

    form = re.compile(r"[A-Za-z][-A-Za-z0-9_$]*(\[\])?(\.[A-Za-z_][-A-Za-z0-9_$]*(\[\])?)*")
    limit = 500


class VersionName(_Checked):
    """A Kubernetes API version such as ``v1alpha1``."""

    form = re.compile(r"v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?")
    limit = 63


class SeriesName(_Checked):
    """A release series such as ``v0.1``."""

    form = re.compile(r"v(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})")
    limit = 16


class ReleaseVersion(_Checked):
    """A Kubernetes or Cluster API release such as ``v1.36.0``."""

    form = re.compile(r"v[0-9]{1,6}\.[0-9]{1,6}\.[0-9]{1,6}")
    limit = 24


class ImageName(_Checked):
    """A canonical image reference without a tag: registry host and repository path (CC-27)."""

    form = re.compile(
        rf"{DnsSubdomain.form.pattern}(:[0-9]{{1,5}})?(/[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*)+"
    )
    limit = 255


class RepositoryUrl(_Checked):
    """A repository's HTTPS URL."""

    form = re.compile(r"https://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~-]+){2,}")
    limit = 512


class RelativePath(_Checked):
    """A POSIX path inside a folder: not absolute, without ``..``, blanks or backslashes.

    The set of characters is limited on purpose: paths are printed into generated YAML, Makefiles
    and shell commands, and must be valid on every system on which git checks them out.
    """

    form = re.compile(r"(?!\.\.?(/|$))[A-Za-z0-9._@+-]+(/(?!\.\.?(/|$))[A-Za-z0-9._@+-]+)*")
    limit = 240


class LicenceId(_Checked):
    """An SPDX licence identifier."""

    form = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")
    limit = 64
