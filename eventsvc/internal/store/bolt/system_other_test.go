//go:build !linux

package bolt_test

import (
	"errors"
	"testing"
)

func mountSmall(t *testing.T, _, _ string) {
	t.Helper()
	unable(t, "a small file system is mounted on Linux only")
}

func resizeMount(_, _ string) error { return errors.ErrUnsupported }

func unmount(string) error { return errors.ErrUnsupported }

func dropPages(b *testing.B, _ string) {
	b.Helper()
	b.Skip("pages are dropped on Linux only")
}
