"""Judge providers: static rules, releases, and running providers."""
