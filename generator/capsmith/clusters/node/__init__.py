"""A node on which a lab runs Pods: containerd, kubelet and the parts of Kubernetes that Pods need.

All processes run in separate namespaces, and nothing is written to the host.
"""
