"""Judge providers by the contract: by static rules, by their releases, and while they run."""
