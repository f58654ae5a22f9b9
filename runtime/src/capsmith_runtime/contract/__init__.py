"""The Cluster API contract as pure functions and data, without a client.

The contract version is an argument. Differences between versions are in ``v1beta1`` and
``v1beta2``; everything else is the same in both versions.
"""
