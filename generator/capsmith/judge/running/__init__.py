"""Checks of a running provider: what its manager does with objects, judged by the contract's rules.

The rules of other checks read files; see `capsmith.judge.rules`.
"""
