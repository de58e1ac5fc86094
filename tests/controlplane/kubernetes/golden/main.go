// Command golden writes what Kubernetes itself makes of given inputs, to be compared with in tests:
//
//	apiserver/src/table/golden.txt        tables (the API server's printers) of the objects in tables.yaml
//	apiserver/src/strategic/golden.txt    strategic merge patches, those in strategic.yaml and random ones
//	core/src/jsonpath/golden.txt          what client-go finds by the JSONPaths in jsonpath.yaml
//
// To regenerate, in this folder: go run . (and go run . -check to fail when a committed file differs).
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	check := flag.Bool("check", false, "compare with the committed files and write nothing")
	root := flag.String("root", "../../../..", "folder of the repository")
	flag.Parse()
	if err := run(*root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "golden:", err)
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	files := []struct {
		path  string
		write func() ([]byte, error)
	}{
		{"apiserver/src/table/golden.txt", tables},
		{"apiserver/src/strategic/golden.txt", strategic},
		{"core/src/jsonpath/golden.txt", jsonpaths},
	}
	for _, file := range files {
		text, err := file.write()
		if err != nil {
			return fmt.Errorf("%s: %w", file.path, err)
		}
		path := filepath.Join(root, file.path)
		if !check {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				return err
			}
			continue
		}
		committed, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !bytes.Equal(committed, text) {
			return fmt.Errorf("%s differs from what this program writes: run it without -check", path)
		}
	}
	return nil
}
