package main

import (
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestStartOnAFullDisk: whatever a start would write, the events are served where nothing can be written: the secret of
// the admin listener, a certificate for other hosts, the end of a line of the audit log.
func TestStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=100m"); err != nil {
		unable(t, "a small file system cannot be mounted (%v): run the tests as root", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	i := newIssuer(t)
	settings := []string{"--tls-self-signed", "--listen-https=127.0.0.1:0", "--audit=metadata"}
	p := start(t, dir, i, settings...)
	if code, answer := p.do(http.MethodPost, eventsPath, newEvent("before")); code != http.StatusCreated {
		t.Fatalf("%d %v", code, answer)
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	audited := filepath.Join(dir, "audit.log")
	whole, err := os.ReadFile(audited)
	if err != nil || len(whole) == 0 {
		t.Fatalf("%q, %v", whole, err)
	}
	whole = append(whole, make([]byte, (4096-len(whole)%4096)%4096)...)
	for at := range whole { // a line without an end, up to the end of a page: one more byte takes another page
		if whole[at] == 0 {
			whole[at] = 'x'
		}
	}
	if err := os.WriteFile(audited, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(dir, "others")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	p = launch(t, dir, i, append(settings, "--tls-hosts=other.example")...)
	if code, answer := p.do(http.MethodGet, eventsPath+"/before", ""); code != http.StatusOK {
		t.Errorf("the event on a full disk: %d %v", code, answer)
	}
	if code, answer := p.do(http.MethodPost, eventsPath, newEvent("meanwhile")); code != http.StatusServiceUnavailable {
		t.Errorf("a create on a full disk: %d %v", code, answer)
	}
	if secret, err := os.ReadFile(filepath.Join(dir, "admin.token")); err != nil || len(secret) == 0 {
		t.Errorf("the secret of the admin listener: %q, %v", secret, err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
}
