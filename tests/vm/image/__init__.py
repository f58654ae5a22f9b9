"""The Linux of the machines, made of distribution packages and of binaries that Go builds."""
