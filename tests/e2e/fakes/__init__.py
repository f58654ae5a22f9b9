"""Helpers that replace kubeadm and machines, with just enough for clusters to come up.

A bootstrap provider, a control plane provider and a kubelet. They are not under test: they exist so
that the infrastructure provider under test meets a complete, real core. Everything is
level-triggered: each tick looks at the current state and takes the next step.
"""
