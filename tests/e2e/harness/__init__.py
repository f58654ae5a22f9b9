"""The provider under test as processes, and its simulated clouds; independent of any test.

Servers, core and clusterctl are in `capsmith.clusters.processes`.
"""
