"""A node on which a lab runs Pods: containerd, kubelet and the parts of Kubernetes that Pods need.

All processes are in namespaces of their own, and nothing is written to the host.
"""
