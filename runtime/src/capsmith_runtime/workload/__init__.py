"""Access to workload clusters: kubeconfigs, certificates and clients."""
