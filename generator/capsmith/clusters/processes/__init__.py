"""Management clusters that consist of plain processes: etcd, API servers, core and clusterctl.

Core and clusterctl are the real ones.  Needs no containers.  Independent of any provider, test or
console.
"""
