"""Judge providers: rules on manifests, releases, running providers."""
