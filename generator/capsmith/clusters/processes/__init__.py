"""Management clusters of processes: etcd, API servers, the real Cluster API core and clusterctl.

No containers are needed.  Knows no provider, no test and no console.
"""
