// Command kinds writes the table of built-in kinds that the in-memory API server is built on
// (apiserver/src/kinds/table.txt), and the golden objects its protobuf decoder is tested with
// (apiserver/src/kinds/golden.txt).
//
// It reflects over the Go types of every stable API (client-go's scheme, CustomResourceDefinition and
// APIService) for fields, JSON and protobuf tags, and reads names, scope, verbs and subresources from the
// discovery and OpenAPI documents in the module k8s.io/kubernetes.
//
// To regenerate both files, in this folder:
//
//	go run .
//
// and to fail when a committed file is not what would be written, go run . -check, or go test.
// After a new Kubernetes release: raise the versions in go.mod, then release below, and regenerate.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// The release whose documents are read; its Go types are those of v0.X.Y in go.mod.
const release = "v1.37.2"

func main() {
	check := flag.Bool("check", false, "compare with the committed files and write nothing")
	out := flag.String("out", "../../../apiserver/src/kinds", "folder of the written files")
	flag.Parse()
	if err := run(*out, *check); err != nil {
		fmt.Fprintln(os.Stderr, "kinds:", err)
		os.Exit(1)
	}
}

func run(out string, check bool) error {
	files, err := generate()
	if err != nil {
		return err
	}
	for _, file := range files {
		path := filepath.Join(out, file.name)
		if !check {
			if err := os.WriteFile(path, file.text, 0o644); err != nil {
				return err
			}
			continue
		}
		committed, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !bytes.Equal(committed, file.text) {
			return fmt.Errorf("%s differs from what this program writes: run it without -check", path)
		}
	}
	return nil
}

type file struct {
	name string
	text []byte
}

func generate() ([]file, error) {
	root, err := kubernetesSource()
	if err != nil {
		return nil, err
	}
	table, err := writeTable(root)
	if err != nil {
		return nil, err
	}
	golden, bodies, err := writeGolden()
	if err != nil {
		return nil, err
	}
	return []file{{"table.txt", table}, {"golden.txt", golden}, {"bodies.txt", bodies}}, nil
}

// kubernetesSource is the folder of the module k8s.io/kubernetes, fetched when it is not in the cache. It is
// no requirement in go.mod, because only its documents are read: none of its code is built.
func kubernetesSource() (string, error) {
	command := exec.Command("go", "mod", "download", "-json", "k8s.io/kubernetes@"+release)
	command.Stderr = os.Stderr
	answer, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go mod download k8s.io/kubernetes@%s: %w", release, err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(answer, &module); err != nil {
		return "", err
	}
	return module.Dir, nil
}
