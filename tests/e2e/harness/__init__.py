"""The provider under test as processes, and its simulated clouds. Knows no test.

Servers, core and clusterctl are in `capsmith.clusters.processes`.
"""
