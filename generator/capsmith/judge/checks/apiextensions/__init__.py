"""Find what the API server refuses in a CRD, like k8s.io/apiextensions-apiserver. Opens no
files."""
