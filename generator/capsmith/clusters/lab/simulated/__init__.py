"""Simulated machines: workload clusters with real API servers and simulated Nodes.

The simulation sends the requests that kubeadm and a kubelet would send to a cluster's API server.
"""
