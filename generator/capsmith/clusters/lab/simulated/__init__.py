"""Simulated machines: workload clusters with real API servers and simulated Nodes.

The simulation sends the same requests to a cluster's API server that kubeadm and a kubelet would
send.
"""
