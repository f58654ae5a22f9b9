"""Management clusters of plain processes: etcd, API servers, the real core and clusterctl.

Needs no containers.  Independent of any provider, test or console.
"""
