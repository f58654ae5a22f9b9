"""Find reasons why the API server would reject a CRD, like k8s.io/apiextensions-apiserver. Opens no
files.
"""
