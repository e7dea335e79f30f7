// Command sbom prints the software bill of materials of a Go binary: its modules, as the linker has recorded them in
// the binary, in CycloneDX 1.6 (https://cyclonedx.org/docs/1.6/json/). The same binary gives the same bytes.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

type bill struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	PURL    string `json:"purl,omitempty"`
	Hashes  []hash `json:"hashes,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sbom BINARY")
		os.Exit(2)
	}
	b, err := read(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	if err := out.Encode(b); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func read(path string) (*bill, error) {
	content, err1 := os.ReadFile(path)
	info, err2 := buildinfo.ReadFile(path)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	program := component{Type: "application", Name: filepath.Base(path), Version: info.Main.Version,
		Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}}}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			program.Version = s.Value
		}
	}
	// The standard library is a component too: most known vulnerabilities of Go programs are in it.
	version := strings.TrimPrefix(info.GoVersion, "go")
	b := &bill{"CycloneDX", "1.6", 1, metadata{program}, []component{{"library", "std", version, "pkg:golang/std@" + version, nil}}}
	for _, m := range info.Deps {
		b.Components = append(b.Components, library(m))
	}
	return b, nil
}

// library is a module. Only those of this repository are replaced, by their directories, and they have no version.
func library(m *debug.Module) component {
	if m.Replace != nil {
		return component{Type: "library", Name: m.Path}
	}
	return component{Type: "library", Name: m.Path, Version: m.Version, PURL: "pkg:golang/" + m.Path + "@" + m.Version}
}
