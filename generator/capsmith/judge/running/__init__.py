"""Check a running provider: its manager's behaviour, judged by the contract's rules.

Static checks of files are in `capsmith.judge.rules`.
"""
