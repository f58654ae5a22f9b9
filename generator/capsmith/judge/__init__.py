"""Check providers against the contract: with static rules, across releases, and at run time."""
