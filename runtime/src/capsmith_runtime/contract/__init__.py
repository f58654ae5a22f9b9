"""The Cluster API contract: pure functions and data, without a client.

The contract version is an argument.  What differs between versions is in ``v1beta1`` and
``v1beta2``; everything else is common to both.
"""
