package main

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"sort"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

const header = `# Built-in kinds of Kubernetes %s. Written by tests/controlplane/kinds; do not edit.
#
# group NAME VERSION...                     stable versions, the preferred one first, in discovery order
# resource GV PLURAL SINGULAR ns|cluster KIND VERBS [short=] [cat=] [hash=]
#  /SUBRESOURCE [GV] KIND VERBS             of the resource above
# package ID OPENAPI-PREFIX                 of the structs below
# struct NAME [kind=GV] [atomic]            a kind when kind= is given; kind=* in every group and version
#  JSON-NAME TYPE NUMBER FLAGS              ~ for an inlined struct; number 0: not on the wire
#
# TYPE: *T pointer, []T list, {}T map from strings, lower case a scalar, !T a type with its own JSON form,
# else a struct, of the same package when none is named.
# FLAGS: o omitempty, z omitzero, r required in OpenAPI; patch=STRATEGY, merge=KEY for strategic merge patch;
# list=set or list=map:KEYS for server-side apply (else a list is atomic); map=atomic (else it is granular);
# go=GO-TYPE, of=GO-TYPE the Go names of the type and of what a scalar is, when TYPE does not tell them.
`

var stable = regexp.MustCompile(`^v[0-9]+$`)

// What a body may hold besides the kinds in discovery, in any group and version: the options of a request, and
// the answer to it.
var everywhere = []string{"DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions", "Status"}

func newScheme() (*runtime.Scheme, error) {
	types := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(scheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme)
	return types, builder.AddToScheme(types)
}

func writeTable(root string) ([]byte, error) {
	types, err := newScheme()
	if err != nil {
		return nil, err
	}
	discovery, err := readDiscovery(root)
	if err != nil {
		return nil, err
	}
	kinds, err := bodyKinds(types, discovery)
	if err != nil {
		return nil, err
	}
	models, err := readModels(root)
	if err != nil {
		return nil, err
	}
	structs, err := collect(kinds)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, header, release)
	discovery.write(&out)
	err = writeStructs(&out, structs, models)
	return out.Bytes(), err
}

// bodyKinds are the Go types of every kind a body may hold, each with its group and version, "*" for all of them.
func bodyKinds(types *runtime.Scheme, discovery *discovery) (map[reflect.Type]string, error) {
	kinds := map[reflect.Type]string{}
	for _, gvk := range discovery.kinds() {
		known, ok := types.AllKnownTypes()[gvk]
		if !ok {
			return nil, fmt.Errorf("%s is in discovery but not in the scheme", gvk)
		}
		kinds[known] = gvk.GroupVersion().String()
	}
	for _, kind := range everywhere {
		kinds[types.AllKnownTypes()[schema.GroupVersionKind{Version: "v1", Kind: kind}]] = "*"
	}
	return kinds, nil
}

// A struct type as the table names it.
type structType struct {
	id, name, kind string
	model          string
	fields         []field
}

type field struct {
	name, kind          string
	number              int
	omitEmpty, omitZero bool
	patch, mergeKey     string
	goType, goElement   string
}

// collect walks the fields of kinds and returns every struct it meets, sorted by package and name.
func collect(kinds map[reflect.Type]string) ([]structType, error) {
	seen := map[reflect.Type]bool{}
	var queue []reflect.Type
	push := func(t reflect.Type) {
		if !seen[t] {
			seen[t] = true
			queue = append(queue, t)
		}
	}
	for t := range kinds {
		push(t)
	}
	var structs []structType
	for len(queue) > 0 {
		t := queue[0]
		queue = queue[1:]
		described, err := describe(t, push)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
		described.kind = kinds[t]
		structs = append(structs, described)
	}
	sort.Slice(structs, func(i, j int) bool {
		a, b := structs[i], structs[j]
		return a.id < b.id || a.id == b.id && a.name < b.name
	})
	return structs, nil
}

func writeStructs(out *bytes.Buffer, structs []structType, models models) error {
	id := ""
	for _, s := range structs {
		if s.id != id {
			id = s.id
			fmt.Fprintf(out, "package %s %s\n", id, strings.TrimSuffix(s.model, "."+s.name))
		}
		model := models[s.model]
		fmt.Fprintf(out, "struct %s", s.name)
		if s.kind != "" {
			fmt.Fprintf(out, " kind=%s", s.kind)
		}
		if model.MapType == "atomic" {
			out.WriteString(" atomic")
		}
		out.WriteByte('\n')
		for _, f := range s.fields {
			flags, err := f.flags(model)
			if err != nil {
				return fmt.Errorf("%s.%s: %w", s.model, f.name, err)
			}
			line := fmt.Sprintf(" %s %s %d %s", f.name, strings.ReplaceAll(f.kind, id+".", ""), f.number, flags)
			out.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	return nil
}

func (f field) flags(m model) (string, error) {
	letters := ""
	if f.omitEmpty {
		letters += "o"
	}
	if f.omitZero {
		letters += "z"
	}
	if m.required(f.name) {
		letters += "r"
	}
	words := []string{}
	if letters != "" {
		words = append(words, letters)
	}
	if f.patch != "" {
		words = append(words, "patch="+f.patch)
	}
	if f.mergeKey != "" {
		words = append(words, "merge="+f.mergeKey)
	}
	property := m.Properties[f.name]
	switch property.ListType {
	case "", "atomic":
	case "set":
		words = append(words, "list=set")
	case "map":
		words = append(words, "list=map:"+strings.Join(property.ListKeys, ","))
	default:
		return "", fmt.Errorf("list type %q", property.ListType)
	}
	if property.MapType == "atomic" {
		words = append(words, "map=atomic")
	}
	if f.goType != "" {
		words = append(words, "go="+f.goType)
	}
	if f.goElement != "" {
		words = append(words, "of="+f.goElement)
	}
	return strings.Join(words, " "), nil
}
