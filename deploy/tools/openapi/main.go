// Program openapi writes the schemas of the Events API as one JSON document,
// which eventsvc embeds for its OpenAPI documents and for managed fields:
//
//	go run ./openapi ../../eventsvc/internal/codec/schemas.json
//
// The definitions are those that openapi-gen makes of the k8s.io/api types,
// reduced to what an event and the bodies around it refer to. It runs in two
// steps, because openapi-gen writes Go code: the second step is a program in a
// temporary directory.
package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed second_step.go.txt
var secondStep []byte

// packages hold the types; core/v1 needs those of apimachinery.
var packages = []string{
	"k8s.io/api/core/v1",
	"k8s.io/api/events/v1",
	"k8s.io/apimachinery/pkg/api/resource",
	"k8s.io/apimachinery/pkg/apis/meta/v1",
	"k8s.io/apimachinery/pkg/runtime",
	"k8s.io/apimachinery/pkg/util/intstr",
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: openapi FILE")
		os.Exit(2)
	}
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

func generate(file string) error {
	dir, err := os.MkdirTemp("openapi", "step")
	if err != nil {
		return fmt.Errorf("run this in the folder of the module: %w", err)
	}
	defer os.RemoveAll(dir)
	args := append([]string{
		"tool", "openapi-gen", "--output-dir", dir, "--output-pkg", "main", "--output-file", "definitions.go",
		"--go-header-file", os.DevNull, "--report-filename", filepath.Join(dir, "report"),
	}, packages...)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("openapi-gen: %w\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), secondStep, 0o644); err != nil {
		return err
	}
	document, err := exec.Command("go", "run", "./"+dir).Output()
	if err != nil {
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			err = fmt.Errorf("%w\n%s", err, exit.Stderr)
		}
		return fmt.Errorf("second step: %w", err)
	}
	return os.WriteFile(file, document, 0o644)
}
