package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What the discovery documents say of the stable versions, in their order.
type discovery struct {
	groups    []metav1.APIGroup
	resources []metav1.APIResourceList
}

func readDiscovery(root string) (*discovery, error) {
	folder := filepath.Join(root, "api", "discovery")
	var list metav1.APIGroupList
	if err := readJSON(filepath.Join(folder, "apis.json"), &list); err != nil {
		return nil, err
	}
	core := metav1.GroupVersionForDiscovery{GroupVersion: "v1", Version: "v1"}
	groups := append([]metav1.APIGroup{{Versions: []metav1.GroupVersionForDiscovery{core}}}, list.Groups...)
	d := &discovery{}
	for _, group := range groups {
		group.Versions = slices.DeleteFunc(group.Versions, func(v metav1.GroupVersionForDiscovery) bool {
			return !stable.MatchString(v.Version)
		})
		if len(group.Versions) == 0 {
			continue
		}
		if preferred := group.PreferredVersion.Version; preferred != "" && preferred != group.Versions[0].Version {
			return nil, fmt.Errorf("group %s prefers %s to its first stable version", group.Name, preferred)
		}
		d.groups = append(d.groups, group)
		for _, version := range group.Versions {
			name := "apis__" + group.Name + "__" + version.Version + ".json"
			if group.Name == "" {
				name = "api__" + version.Version + ".json"
			}
			var resources metav1.APIResourceList
			if err := readJSON(filepath.Join(folder, name), &resources); err != nil {
				return nil, err
			}
			d.resources = append(d.resources, resources)
		}
	}
	return d, nil
}

// kinds are those of every resource and subresource that takes an object, once each. The options of
// connect requests (PodExecOptions and the like) arrive as query parameters and are left out.
func (d *discovery) kinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, list := range d.resources {
		gv, _ := schema.ParseGroupVersion(list.GroupVersion)
		for _, resource := range list.APIResources {
			own := gv
			if resource.Version != "" {
				own = schema.GroupVersion{Group: resource.Group, Version: resource.Version}
			}
			if kind := own.WithKind(resource.Kind); !slices.Contains(kinds, kind) && takesObject(resource) {
				kinds = append(kinds, kind)
			}
		}
	}
	return kinds
}

func takesObject(resource metav1.APIResource) bool {
	return !strings.HasSuffix(resource.Kind, "Options")
}

func (d *discovery) write(out io.Writer) {
	for _, group := range d.groups {
		name := group.Name
		if name == "" {
			name = "-"
		}
		fmt.Fprintf(out, "group %s", name)
		for _, version := range group.Versions {
			fmt.Fprintf(out, " %s", version.Version)
		}
		fmt.Fprintln(out)
	}
	for _, list := range d.resources {
		for _, resource := range list.APIResources {
			writeResource(out, list.GroupVersion, resource)
		}
	}
}

func writeResource(out io.Writer, gv string, resource metav1.APIResource) {
	verbs := strings.Join(resource.Verbs, ",")
	if _, sub, ok := strings.Cut(resource.Name, "/"); ok {
		kind := resource.Kind
		if resource.Version != "" {
			kind = schema.GroupVersion{Group: resource.Group, Version: resource.Version}.String() + " " + kind
		}
		fmt.Fprintf(out, " /%s %s %s\n", sub, kind, verbs)
		return
	}
	scope := "cluster"
	if resource.Namespaced {
		scope = "ns"
	}
	fmt.Fprintf(out, "resource %s %s %s %s %s %s", gv, resource.Name, resource.SingularName, scope, resource.Kind, verbs)
	for _, list := range []struct {
		name   string
		values []string
	}{{"short", resource.ShortNames}, {"cat", resource.Categories}} {
		if len(list.values) > 0 {
			fmt.Fprintf(out, " %s=%s", list.name, strings.Join(list.values, ","))
		}
	}
	if resource.StorageVersionHash != "" {
		fmt.Fprintf(out, " hash=%s", resource.StorageVersionHash)
	}
	fmt.Fprintln(out)
}

// What the OpenAPI document says of each struct, by model name.
type models map[string]model

type model struct {
	Required   []string
	MapType    string `json:"x-kubernetes-map-type"`
	Properties map[string]struct {
		ListType string   `json:"x-kubernetes-list-type"`
		ListKeys []string `json:"x-kubernetes-list-map-keys"`
		MapType  string   `json:"x-kubernetes-map-type"`
	}
}

func (m model) required(property string) bool { return slices.Contains(m.Required, property) }

func readModels(root string) (models, error) {
	var document struct{ Definitions models }
	err := readJSON(filepath.Join(root, "api", "openapi-spec", "swagger.json"), &document)
	// A struct that is only ever inlined has no definition; that of the struct around it says the same of its fields.
	const around = "io.k8s.api.core.v1.EphemeralContainer"
	if document.Definitions != nil {
		document.Definitions[around+"Common"] = document.Definitions[around]
	}
	return document.Definitions, err
}

func readJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
