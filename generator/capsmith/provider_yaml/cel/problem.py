"""What is wrong with a rule, and where in the expression."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RuleProblem:
    """``line`` and ``column`` count from 1 in the expression; 0 means all of it."""

    message: str
    hint: str
    line: int = 0
    column: int = 0
    undecided: bool = False
    """Whether an API server may accept the rule nevertheless."""
    is_foreign: bool = False
    """Whether it may be about a function that only another release of Kubernetes has."""
