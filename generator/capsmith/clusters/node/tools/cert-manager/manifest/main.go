// Command manifest prints what cert-manager's releases install: its chart with the CRDs.
//
// The only argument is the folder of cert-manager's sources.
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sort"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// The version is set by the linker.
var version = ""

func main() {
	sources := os.Args[1]
	rendered, err := render(sources)
	if err != nil {
		log.Fatal(err)
	}
	names := make([]string, 0, len(rendered))
	for name := range rendered {
		names = append(names, name)
	}
	sort.Strings(names)
	namespace, err := os.ReadFile(filepath.Join(sources, "deploy/manifests/namespace.yaml"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(namespace))
	for _, name := range names {
		if filepath.Ext(name) == ".yaml" {
			fmt.Printf("---\n%s\n", rendered[name])
		}
	}
}

func render(sources string) (map[string]string, error) {
	found, err := load(sources)
	if err != nil {
		return nil, err
	}
	values := map[string]any{
		"installCRDs":     true,
		"creator":         "static",
		"startupapicheck": map[string]any{"enabled": false},
	}
	options := chartutil.ReleaseOptions{Name: "cert-manager", Namespace: "cert-manager", IsInstall: true}
	merged, err := chartutil.ToRenderValues(found, values, options, chartutil.DefaultCapabilities.Copy())
	if err != nil {
		return nil, err
	}
	return engine.Render(found, merged)
}

// load reads the chart and adds its CRDs, as upstream's build of a release does.
func load(sources string) (*chart.Chart, error) {
	folder := filepath.Join(sources, "deploy/charts/cert-manager")
	files := []*loader.BufferedFile{{
		Name: "Chart.yaml",
		Data: []byte("apiVersion: v2\nname: cert-manager\nversion: " + version + "\nappVersion: " + version + "\n"),
	}}
	for name, pattern := range map[string]string{
		"":           "values.yaml",
		"templates/": "templates/*",
	} {
		paths, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			files = append(files, &loader.BufferedFile{Name: name + filepath.Base(path), Data: data})
		}
	}
	crds, err := filepath.Glob(filepath.Join(sources, "deploy/crds/*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, path := range crds {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		files = append(files, &loader.BufferedFile{Name: "templates/" + filepath.Base(path), Data: data})
	}
	return loader.LoadFiles(files)
}
