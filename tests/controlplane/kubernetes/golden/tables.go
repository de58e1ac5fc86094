package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"sort"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/printers"
	printersinternal "k8s.io/kubernetes/pkg/printers/internalversion"
	"sigs.k8s.io/yaml"
)

//go:embed tables.yaml
var tableObjects []byte

// One line of the golden file.
type tableCase struct {
	Objects []json.RawMessage `json:"objects"`
	List    bool              `json:"list,omitempty"`
	Columns [][4]any          `json:"columns"`
	Rows    [][]any           `json:"rows"`
	Done    []string          `json:"done,omitempty"`
}

func tables() ([]byte, error) {
	cases, err := tableCases()
	if err != nil {
		return nil, err
	}
	generator := printers.NewTableGenerator().With(printersinternal.AddHandlers)
	// Ages are whole seconds: start early within one.
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second + 10*time.Millisecond)))
	var out bytes.Buffer
	for _, c := range cases {
		if err := c.print(generator); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Objects, err)
		}
		line, err := json.Marshal(c)
		if err != nil {
			return nil, err
		}
		out.Write(append(line, '\n'))
	}
	return out.Bytes(), nil
}

// The objects of the file, and an empty one of each kind in it.
func tableCases() ([]*tableCase, error) {
	var cases []*tableCase
	kinds := map[schema.GroupVersionKind]bool{}
	for _, document := range bytes.Split(tableObjects, []byte("\n---\n")) {
		object, err := yaml.YAMLToJSON(document)
		if err != nil {
			return nil, err
		}
		if string(object) == "null" {
			continue
		}
		var list struct {
			metav1.TypeMeta
			Items []json.RawMessage
		}
		if err := json.Unmarshal(object, &list); err != nil {
			return nil, err
		}
		if list.Kind == "List" {
			cases = append(cases, &tableCase{Objects: list.Items, List: true})
			continue
		}
		kinds[list.GroupVersionKind()] = true
		cases = append(cases, &tableCase{Objects: []json.RawMessage{object}})
	}
	var empty []*tableCase
	for kind := range kinds {
		object := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"empty"}}`, kind.GroupVersion(), kind.Kind)
		empty = append(empty, &tableCase{Objects: []json.RawMessage{json.RawMessage(object)}})
	}
	sort.Slice(empty, func(i, j int) bool { return string(empty[i].Objects[0]) < string(empty[j].Objects[0]) })
	return append(cases, empty...), nil
}

var ago = regexp.MustCompile(`"(@@?)(-?[0-9]+)"`)

func withTimes(object []byte, now time.Time) []byte {
	return ago.ReplaceAllFunc(object, func(match []byte) []byte {
		parts := ago.FindSubmatch(match)
		seconds, _ := strconv.Atoi(string(parts[2]))
		layout := time.RFC3339
		if string(parts[1]) == "@@" {
			layout = metav1.RFC3339Micro
		}
		return []byte(strconv.Quote(now.Add(time.Duration(seconds) * time.Second).UTC().Format(layout)))
	})
}

func (c *tableCase) print(generator printers.TableGenerator) error {
	now := time.Now().Truncate(time.Second)
	var objects []runtime.Object
	for _, object := range c.Objects {
		decoded, _, err := legacyscheme.Codecs.UniversalDecoder().Decode(withTimes(object, now), nil, nil)
		if err != nil {
			return err
		}
		objects = append(objects, decoded)
	}
	object := objects[0]
	if c.List {
		var err error
		if object, err = listOf(objects); err != nil {
			return err
		}
	}
	table, err := generator.GenerateTable(object, printers.GenerateOptions{Wide: true})
	if err != nil {
		return err
	}
	for _, column := range table.ColumnDefinitions {
		c.Columns = append(c.Columns, [4]any{column.Name, column.Type, column.Format, column.Priority})
	}
	for _, row := range table.Rows {
		c.Rows = append(c.Rows, row.Cells)
		for _, condition := range row.Conditions {
			c.Done = append(c.Done, string(condition.Reason)+": "+condition.Message)
		}
	}
	return nil
}

// A list in the internal version, as the API server prints it.
func listOf(objects []runtime.Object) (runtime.Object, error) {
	kinds, _, err := legacyscheme.Scheme.ObjectKinds(objects[0])
	if err != nil {
		return nil, err
	}
	list, err := legacyscheme.Scheme.New(schema.GroupVersionKind{
		Group: kinds[0].Group, Version: runtime.APIVersionInternal, Kind: kinds[0].Kind + "List",
	})
	if err != nil {
		return nil, err
	}
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	for _, object := range objects {
		items.Set(reflect.Append(items, reflect.ValueOf(object).Elem()))
	}
	return list, nil
}
