"""Go's text/template as core uses it in patches: whether it parses, and which variables it reads.

Nothing is executed.
"""

from capsmith.manifests.go_template.parser import Template, parse_template
from capsmith.manifests.go_template.tokens import TemplateError

__all__ = ["Template", "TemplateError", "parse_template"]
