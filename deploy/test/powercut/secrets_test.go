//go:build linux

package powercut

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"tidings.example/shared/porttest"
)

// secrets returns the files below tls/ and admin.token, with their contents.
func (d *disk) secrets() map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := map[string]string{}
	for _, dir := range []string{dataDir, dataDir + "/tls"} {
		n := d.find(dir)
		if n == nil {
			continue
		}
		for name, file := range n.entries {
			if whole := !file.isDir() && !strings.HasSuffix(name, ".tmp"); whole && (dir != dataDir || name == "admin.token") {
				found[name] = string(file.live)
			}
		}
	}
	return found
}

// TestSecretsAreDurable: when the service is ready, a cut loses none of the files that clients and operators know it
// by, also if it was killed while it made them.
func TestSecretsAreDurable(t *testing.T) {
	needDisk(t)
	binary := *eventsvc
	if binary == "" {
		binary = build(t)
	}
	keys := startIssuer(t)
	for _, on := range modes {
		t.Run(string(on), func(t *testing.T) {
			t.Parallel()
			for kill, killed := 0, true; killed && !t.Failed(); kill++ { // before each change of such a file
				m := newMachine(t, binary, keys)
				m.mountpoint, m.flags = t.TempDir(), []string{"--tls-self-signed", "--listen-https=" + porttest.Addr(t)}
				d := newDisk(on)
				var err error
				if killed, err = m.killBefore(d, kill); err != nil {
					t.Fatal(err)
				}
				d.restart()
				mounted, s := m.startOn(t, d)
				before := d.secrets()
				if names := slices.Sorted(maps.Keys(before)); fmt.Sprint(names) != "[admin.token ca.crt ca.key tls.crt tls.key]" {
					t.Errorf("the service has made %v", names)
				}
				if err := m.powerOff(mounted, s.process); err != nil {
					t.Fatal(err)
				}
				after := d.cut(nothing, nil).secrets()
				for name, content := range before {
					if after[name] != content {
						t.Errorf("killed before change %d: after the cut %s has %d of its %d bytes, or others", kill, name, len(after[name]), len(content))
					}
				}
			}
		})
	}
}

// killBefore starts the service, and kills it before the n-th change of a file of secrets. It reports whether the
// service made so many changes before it was ready.
func (m *machine) killBefore(d *disk, n int) (killed bool, err error) {
	mounted, err := d.mount(m.mountpoint)
	if err != nil {
		return false, err
	}
	d.stopWhen(func(_, name string) bool {
		if strings.HasPrefix(name, "tls") || strings.HasPrefix(name, "ca.") || strings.HasPrefix(name, "admin.token") {
			n--
		}
		return n < 0
	})
	s, err := m.serve()
	if err != nil {
		return false, err
	}
	ready := make(chan error, 1)
	go func() { ready <- s.ready() }()
	select {
	case <-d.stopped:
		killed = true
	case err = <-ready:
		killed = d.hasStopped()
	case <-time.After(time.Minute):
		err = fmt.Errorf("the service is neither killed nor ready: %s", &s.output)
	}
	if killed {
		err = nil
	}
	return killed, errors.Join(err, m.powerOff(mounted, s.process))
}

// startOn starts the service on a disk and waits until it is ready.
func (m *machine) startOn(t *testing.T, d *disk) (*mount, *service) {
	t.Helper()
	mounted, err := d.mount(m.mountpoint)
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.serve()
	if err == nil {
		err = s.ready()
	}
	if err != nil {
		t.Fatal(err)
	}
	return mounted, s
}
