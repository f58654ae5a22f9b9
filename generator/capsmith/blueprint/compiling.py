"""Compile blueprints: Jinja's code generator with the rules of this project.

Must not know a blueprint or create an environment.
"""

from __future__ import annotations

from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame


class LiteralsAreSafe(CodeGenerator):
    """Treat string constants of a blueprint as safe: they are the blueprint's own text.

    Refuses the statements whose output would be printed unchecked.
    """

    def visit_Const(self, node: nodes.Const, frame: Frame) -> None:
        if isinstance(node.value, str):
            self.write(f"environment.safe_literal({node.value!r})")
        else:
            super().visit_Const(node, frame)

    def _output_child_to_const(self, node: nodes.Expr, frame: Frame, finalize: Any) -> str:
        if isinstance(node, nodes.Const) and isinstance(node.value, str):
            return node.value
        if isinstance(node, nodes.TemplateData):
            return super()._output_child_to_const(node, frame, finalize)
        # Folding anything else would lose the mark of its safety.
        raise nodes.Impossible

    def visit_FilterBlock(self, node: nodes.FilterBlock, frame: Frame) -> None:
        self.fail("the `filter` statement is not supported: print with a filter", node.lineno)

    def visit_CallBlock(self, node: nodes.CallBlock, frame: Frame) -> None:
        self.fail(
            "the `call` statement is not supported: call the macro in an expression", node.lineno
        )
