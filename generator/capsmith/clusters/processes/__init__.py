"""Management clusters of plain processes: etcd, API servers, the real core and clusterctl.

Needs no containers.  Knows no provider, no test and no console.
"""
