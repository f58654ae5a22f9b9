"""How blueprints are compiled: Jinja's code generator with the rules of this project.

Knows no blueprint, and makes no environment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame


class LiteralsAreSafe(CodeGenerator):
    """String constants that stand in a blueprint are the blueprint's own, so they are safe.

    What would be printed without being looked at is no statement here.
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
        self.fail("`filter` is no statement here: print with a filter", node.lineno)

    def visit_CallBlock(self, node: nodes.CallBlock, frame: Frame) -> None:
        self.fail("`call` is no statement here: call the macro in an expression", node.lineno)


class Counted(LiteralsAreSafe):
    """Turns of loops are counted, and so is what lists, mappings and texts are made of."""

    def visit_For(self, node: nodes.For, frame: Frame) -> None:
        def turn() -> nodes.Call:
            return nodes.Call(nodes.EnvironmentAttribute("turn"), [], [], None, None)

        node.body.insert(0, nodes.ExprStmt(turn()).set_lineno(node.lineno))
        if node.test is not None:
            node.test = nodes.And(turn(), node.test)
        super().visit_For(node, frame)

    def visit_List(self, node: nodes.List, frame: Frame) -> None:
        self._weighed(super().visit_List, node, frame)

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:
        self._weighed(super().visit_Dict, node, frame)

    def visit_Tuple(self, node: nodes.Tuple, frame: Frame) -> None:
        if node.ctx == "load":
            self._weighed(super().visit_Tuple, node, frame)
        else:
            super().visit_Tuple(node, frame)

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        self._weighed(super().visit_Concat, node, frame)

    def _weighed(self, visit: Callable[..., None], node: nodes.Expr, frame: Frame) -> None:
        self.write("environment.weighed(")
        visit(node, frame)
        self.write(")")
