package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"

	"k8s.io/client-go/util/jsonpath"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

//go:embed jsonpath.yaml
var paths []byte

// The value, then one line for each expression: what it finds, or that it is an error.
func jsonpaths() ([]byte, error) {
	var cases struct {
		Value json.RawMessage
		Paths []string
	}
	if err := yaml.Unmarshal(paths, &cases); err != nil {
		return nil, err
	}
	var value any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(cases.Value, &value); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := writeLine(&out, value); err != nil {
		return nil, err
	}
	for _, path := range cases.Paths {
		found, err := find(path, value)
		line := map[string]any{"path": path}
		if err == nil {
			line["found"] = found
		}
		if err := writeLine(&out, line); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

func find(path string, value any) ([]any, error) {
	parsed := jsonpath.New("path").AllowMissingKeys(true)
	if err := parsed.Parse("{" + path + "}"); err != nil {
		return nil, err
	}
	results, err := parsed.FindResults(value)
	if err != nil {
		return nil, err
	}
	if len(results) != 1 {
		return nil, fmt.Errorf("no single expression")
	}
	found := []any{}
	for _, result := range results[0] {
		found = append(found, result.Interface())
	}
	return found, nil
}
