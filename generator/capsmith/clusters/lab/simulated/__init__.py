"""Simulated machines: workload clusters with real API servers and simulated Nodes.

The simulation writes to the API server of a cluster what kubeadm and a kubelet would.
"""
