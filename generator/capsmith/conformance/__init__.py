"""Checks of the contract rules on providers and on manifests."""
