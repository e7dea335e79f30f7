// Command docs renders the manual: as static pages for any web server into a directory,
// or without one for the console, into the folder from which eventsvc embeds it.
//
//	go run . [DIRECTORY]
package main

import (
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
	if err == nil && len(os.Args) == 2 {
		err = write(manual.Static, os.Args[1])
	} else if err == nil {
		err = writeHelp(manual, filepath.Join(root, site.Console))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

// writeHelp renders the pages of the console, and removes those of earlier runs.
func writeHelp(manual *site.Manual, dir string) error {
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".html" {
			err = os.Remove(path)
		}
		return err
	})
	if err != nil {
		return err
	}
	return write(manual.Help, dir)
}

// write renders the manual into a directory.
func write(render func() (map[string][]byte, error), dir string) error {
	files, err := render()
	if err != nil {
		return err
	}
	for name, content := range files {
		file := filepath.Join(dir, name)
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
