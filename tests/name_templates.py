"""Templates of names that core accepts and refuses, for MachineDeployments."""

from __future__ import annotations

from tests.core_objects import JSON, build_objects

ACCEPTED = (
    "{{ if .cluster.name }}a{{ else }}B{{ end }}-{{ .random }}",
    "{{ if false }}{{ .cluster.nam }}{{ end }}{{ .random }}",
    '{{ if eq .cluster.name "x" }}X{{ else if true }}y{{ else }}Z{{ end }}-{{ .random }}',
    '{{ with "" }}A{{ else with .cluster }}{{ .name }}{{ end }}-{{ .random }}',
    "{{ if gt (len .cluster.name) 5 }}{{ slice .cluster.name 0 5 }}{{ end }}-{{ .random }}",
    '{{ if or .cluster.name (eq .cluster.nam "a") }}x{{ end }}{{ .random }}',
    '{{ if and false (eq .cluster.nam "a") }}X{{ end }}{{ .random }}',
    "{{ with .cluster }}{{ .name }}{{ $.machineSet.name }}{{ end }}-{{ .random }}",
    "{{ $n := .cluster.name }}{{ if true }}{{ $n = `b` }}{{ end }}{{ $n }}-{{ .random }}",
    '{{ index .cluster "name" }}-{{ (.cluster).name }}-{{ .random }}',
    '{{ print .cluster.name "-" 1 "-" true }}-{{ .random }}',
    "{{ .cluster.name | print | len }}-{{ not .cluster.name }}-{{ .random }}",
    '{{ printf "%.3s-%s-%d-%v" .cluster.name .random 5 true }}{{ .random }}',
    "{{ .cluster.name -}} - {{- .random }}{{ .random }}",
    f"{'a' * 62}-b{{{{ .random }}}}",
    "{{ html .cluster.name }}{{ urlquery .cluster.name }}{{ js .random }}-{{ .random }}",
    "{{/* note */}}a-{{ slice .random 0 3 }}{{ .random }}",
    "{{ range .cluster }}{{ . }}{{ end }}-{{ .random }}",
    '{{ define "x" }}a{{ end }}{{ template "x" }}-{{ .random }}',
    "{{ if lt 1 2 }}a{{ end }}{{ if ge 2 2 }}b{{ end }}{{ if le `a` `b` }}c{{ end }}{{ .random }}",
)
REFUSED = (
    "{{ if .cluster.name }}A{{ else }}b{{ end }}-{{ .random }}",
    "{{ if .cluster.nam }}a{{ end }}-{{ .random }}",
    '{{ if eq .cluster.name "x" }}x{{ end }}-{{ .random }}',
    "{{ slice .cluster.name 0 10 }}-{{ .random }}",
    "{{ slice .cluster.name 3 1 }}-{{ .random }}",
    "{{ slice .cluster 0 1 }}-{{ .random }}",
    "{{ with .cluster }}{{ .nam }}{{ end }}-{{ .random }}",
    "{{ with .cluster }}{{ .random }}{{ end }}",
    "{{ $n := .cluster.name }}{{ $n }}_{{ .random }}",
    "{{ if gt .cluster.name 5 }}x{{ end }}-{{ .random }}",
    "{{ if lt true false }}x{{ end }}{{ .random }}",
    '{{ index .cluster "nam" }}-{{ .random }}',
    "{{ index .cluster 1 }}-{{ .random }}",
    "{{ println .cluster.name }}{{ .random }}",
    "{{ nil }}-{{ .random }}",
    "{{ .cluster.name 5 }}-{{ .random }}",
    "{{ 1 | .cluster.name }}-{{ .random }}",
    "{{ eq .cluster.name .cluster }}-{{ .random }}",
    "{{ eq .cluster.name }}{{ .random }}",
    '{{ ne .cluster.name "a" "b" }}{{ .random }}',
    "{{ $.cluster.nam }}-{{ .random }}",
    "{{ if .cluster.name.first }}{{ end }}{{ .random }}",
    "{{ call .cluster.name }}-{{ .random }}",
    '{{ "A" }}-{{ .random }}',
    "{{ -5 }}{{ .random }}",
    "{{ . }}{{ .random }}",
    "{{ len }}{{ .random }}",
    "{{ len 5 }}{{ .random }}",
    '{{ if and .cluster.name (eq .cluster.nam "a") }}x{{ end }}{{ .random }}',
    '{{ printf "%d" .cluster.name }}{{ .random }}',
    '{{ printf "%s" }}{{ .random }}',
    '{{ printf "a" .cluster.name }}{{ .random }}',
    "{{ printf 5 }}{{ .random }}",
    "{{ $x = 2 }}{{ .random }}",
    "{{ $x := $x }}{{ .random }}",
    " {{/* note */}}{{- $.random }}{{ .random }}",
    "{{ if true }}{{ $x := 1 }}{{ end }}a{{ .random }}{{ .cluster }}",
    f"{'a' * 40}-B{{{{ .random }}}}",
)


def build_deployment(text: str) -> JSON:
    """Return a MachineDeployment with a template of the names of its Machines."""
    document = build_objects("v1beta2")["MachineDeployment"]
    document["spec"]["machineNaming"] = {"template": text}
    return document
