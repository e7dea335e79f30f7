// Command docs renders the manual: as static pages for any web server into a directory,
// or without one for the console, into the folder from which eventsvc embeds it.
//
//	go run . [DIRECTORY]
package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"tidings.example/deploy/docs/site"
)

func main() {
	if len(os.Args) > 2 {
		fmt.Fprintln(os.Stderr, "usage: go run . [DIRECTORY]")
		os.Exit(2)
	}
	root := filepath.Join("..", "..")
	manual, err := site.Read(root)
	var files map[string][]byte
	if err == nil && len(os.Args) == 2 {
		if files, err = manual.Static(); err == nil {
			err = write(files, os.Args[1])
		}
	} else if err == nil {
		if files, err = manual.Help(); err == nil {
			err = writeHelp(files, filepath.Join(root, site.Console))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

// writeHelp renders the pages of the console, and removes pages without a source. It does not touch files that are up
// to date, because another process may build the console meanwhile.
func writeHelp(files map[string][]byte, dir string) error {
	if err := write(files, dir); err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".html" {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err == nil && files[filepath.ToSlash(name)] == nil {
			err = os.Remove(path)
		}
		return err
	})
}

// write writes the files that are missing or differ.
func write(files map[string][]byte, dir string) error {
	for name, content := range files {
		file := filepath.Join(dir, name)
		if before, err := os.ReadFile(file); err == nil && bytes.Equal(before, content) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("%d files in %s\n", len(files), dir)
	return nil
}
