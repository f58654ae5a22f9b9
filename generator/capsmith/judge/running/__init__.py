"""Check a running provider: compare its manager's behaviour with the contract's rules.

Static checks on files are in `capsmith.judge.checks`.
"""
