// Command docs writes the manual as static pages into a directory, for any web server.
//
//	go run . DIRECTORY
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"tidings.example/deploy/docs/site"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run . DIRECTORY")
		os.Exit(2)
	}
	if err := write(filepath.Join("..", ".."), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

// write renders the manual of the repository at root into a directory.
func write(root, dir string) error {
	manual, err := site.Read(root)
	if err != nil {
		return err
	}
	files, err := manual.Static()
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
