"""Check a running provider: judge its manager's behaviour by the rules of the contract.

Static checks of files are in `capsmith.judge.checks`.
"""
