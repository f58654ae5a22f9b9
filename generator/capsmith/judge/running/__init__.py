"""Check a running provider: what its manager does with objects, judged by the contract's rules.

Static checks of files are in `capsmith.judge.rules`.
"""
