package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"math/rand"
	"net/http"
	"reflect"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

//go:embed strategic.yaml
var patches []byte

type patchCase struct {
	Kind     string          `json:"kind"`
	Original json.RawMessage `json:"original"`
	Patch    json.RawMessage `json:"patch"`
	Result   any             `json:"result,omitempty"`
	Error    string          `json:"error,omitempty"`
	Code     int             `json:"code,omitempty"`
}

// Patches written by hand, and patches at random.
func strategic() ([]byte, error) {
	var cases []patchCase
	if err := yaml.Unmarshal(patches, &cases); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, c := range cases {
		if err := c.apply(); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Patch, err)
		}
		if err := writeLine(&out, c); err != nil {
			return nil, err
		}
	}
	random := rand.New(rand.NewSource(1))
	for range 100 {
		c := randomCase(random)
		if err := c.apply(); err != nil {
			return nil, err
		}
		// Which of several faults is told depends on the order of a Go map; that there is one does not.
		if c.Error != "" {
			c.Error, c.Code = "any", 0
		}
		// So does the result, when a patch both adds to a set and deletes from it.
		stable := true
		for range 40 {
			again := patchCase{Kind: c.Kind, Original: c.Original, Patch: c.Patch}
			if err := again.apply(); err != nil {
				return nil, err
			}
			stable = stable && reflect.DeepEqual(c.Result, again.Result)
		}
		if !stable {
			continue
		}
		if err := writeLine(&out, c); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

func writeLine(out *bytes.Buffer, value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return err
	}
	out.Write(append(line, '\n'))
	return nil
}

func (c *patchCase) apply() error {
	apiVersion, kind, _ := strings.Cut(c.Kind, " ")
	object, err := legacyscheme.Scheme.New(schema.FromAPIVersionAndKind(apiVersion, kind))
	if err != nil {
		return err
	}
	original, patch := map[string]any{}, map[string]any{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(c.Original, &original); err != nil {
		return err
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(c.Patch, &patch); err != nil {
		return err
	}
	result, err := merge(original, patch, object)
	if err != nil {
		c.Error, c.Code = err.Error(), code(err)
		return nil
	}
	c.Result = result
	return nil
}

func merge(original, patch map[string]any, object runtime.Object) (result map[string]any, err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("panic")
		}
	}()
	return strategicpatch.StrategicMergeMapPatch(original, patch, object)
}

// The code with which the API server answers.
func code(err error) int {
	switch err {
	case mergepatch.ErrBadPatchFormatForPrimitiveList, mergepatch.ErrBadPatchFormatForRetainKeys,
		mergepatch.ErrBadPatchFormatForSetElementOrderList:
		return http.StatusBadRequest
	case mergepatch.ErrNoListOfLists:
		return http.StatusUnprocessableEntity
	}
	return http.StatusInternalServerError
}

// A pod and a patch for it, both with names from so few that they often meet.
func randomCase(random *rand.Rand) patchCase {
	g := generator{random}
	original, _ := json.Marshal(map[string]any{"metadata": g.metadata(false), "spec": g.spec(false)})
	patch, _ := json.Marshal(g.some(map[string]func() any{
		"metadata": func() any { return g.metadata(true) },
		"spec":     func() any { return g.spec(true) },
	}))
	return patchCase{Kind: "v1 Pod", Original: original, Patch: patch}
}

type generator struct{ random *rand.Rand }

func (g generator) name() string { return string(rune('a' + g.random.Intn(4))) }

// Some of the fields, in an order that does not depend on that of the map.
func (g generator) some(fields map[string]func() any) map[string]any {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	sort.Strings(names)
	picked := map[string]any{}
	for _, name := range names {
		if g.random.Intn(3) > 0 {
			picked[name] = fields[name]()
		}
	}
	return picked
}

func (g generator) metadata(patch bool) any {
	m := g.some(map[string]func() any{
		"labels":     func() any { return g.labels(patch) },
		"finalizers": func() any { return g.names() },
	})
	if patch && g.random.Intn(3) == 0 {
		m["$deleteFromPrimitiveList/finalizers"] = g.names()
	}
	if patch && g.random.Intn(3) == 0 {
		m["$setElementOrder/finalizers"] = g.names()
	}
	return m
}

// Different names: what Go makes of a set that is none depends on how much room its memory has.
func (g generator) names() []any {
	var names []any
	for _, i := range g.random.Perm(4)[:1+g.random.Intn(3)] {
		names = append(names, string(rune('a'+i)))
	}
	return names
}

func (g generator) labels(patch bool) any {
	labels := map[string]any{}
	for range g.random.Intn(3) {
		labels[g.name()] = g.name()
	}
	if patch && g.random.Intn(3) == 0 {
		labels[g.name()] = nil
	}
	if patch && g.random.Intn(8) == 0 {
		labels["$patch"] = []string{"replace", "delete"}[g.random.Intn(2)]
	}
	return labels
}

func (g generator) spec(patch bool) any {
	spec := g.some(map[string]func() any{
		"containers":   func() any { return g.list(patch, "name", g.container) },
		"volumes":      func() any { return g.list(patch, "name", g.volume) },
		"tolerations":  func() any { return []any{map[string]any{"key": g.name()}} },
		"nodeSelector": func() any { return g.labels(patch) },
		"nodeName":     func() any { return g.name() },
	})
	if patch && g.random.Intn(3) == 0 {
		var order []any
		for _, name := range []int{0, 1, 2, 3}[:1+g.random.Intn(4)] {
			order = append(order, map[string]any{"name": string(rune('d' - name))})
		}
		spec["$setElementOrder/containers"] = order
	}
	return spec
}

// Items with different names, and in patches with directives.
func (g generator) list(patch bool, key string, item func(bool) map[string]any) any {
	var list []any
	for _, i := range g.random.Perm(4)[:1+g.random.Intn(3)] {
		m := item(patch)
		m[key] = string(rune('a' + i))
		if patch && g.random.Intn(6) == 0 {
			m["$patch"] = []string{"delete", "delete", "replace"}[g.random.Intn(3)]
		}
		list = append(list, m)
	}
	return list
}

func (g generator) container(patch bool) map[string]any {
	return g.some(map[string]func() any{
		"image": func() any {
			if patch && g.random.Intn(4) == 0 {
				return nil
			}
			return g.name()
		},
		"command": func() any { return g.names() },
		"env":     func() any { return g.list(patch, "name", g.variable) },
		"ports": func() any {
			return []any{map[string]any{"containerPort": g.random.Intn(3), "name": g.name()}}
		},
	})
}

func (g generator) variable(bool) map[string]any { return map[string]any{"value": g.name()} }

func (g generator) volume(patch bool) map[string]any {
	volume := g.some(map[string]func() any{
		"hostPath": func() any { return map[string]any{"path": g.name()} },
		"secret":   func() any { return map[string]any{"secretName": g.name()} },
	})
	if patch && g.random.Intn(4) == 0 {
		volume["$retainKeys"] = []any{"name", "hostPath", "secret"}[:1+g.random.Intn(3)]
	}
	return volume
}
