"""What the API server refuses in a CRD, after k8s.io/apiextensions-apiserver; opens no files."""
