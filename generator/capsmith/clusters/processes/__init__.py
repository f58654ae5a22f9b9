"""Management clusters that consist of plain processes: etcd, API servers, core and clusterctl.

Core and clusterctl are the real ones.  No containers are needed.  Independent of any provider, test
or console.
"""
