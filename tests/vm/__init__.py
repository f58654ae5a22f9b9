"""Clusters of virtual machines: examples/libvirt with libvirt, QEMU and a Linux of its own."""
