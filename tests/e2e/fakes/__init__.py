"""Helpers in the place of kubeadm and of machines: just enough for clusters to come up.

A bootstrap provider, a control plane provider and a kubelet. They exist so that the
infrastructure provider under test meets a complete, real core; they are not under test.
Everything is level-triggered: each tick looks at what is there and does the next step.
"""
