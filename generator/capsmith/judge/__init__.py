"""Judge providers by the contract: with static rules, by their releases, and while they run."""
