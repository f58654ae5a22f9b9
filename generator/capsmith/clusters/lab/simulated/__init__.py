"""Simulated machines: workload clusters whose API server is real and whose Nodes are not.

What kubeadm and a kubelet would do on a machine is written to the API server of its cluster.
"""
