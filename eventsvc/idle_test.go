//go:build !race

package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
)

// TestIdleWatchesAreSmall: a watch over HTTP/1.1 that waits has two stacks, of 16 KiB
// and of 2 KiB, beside net/http's buffers and the request (38 KiB in all, measured).
// It measures the process, the clients' ends included, so it runs alone. The race
// detector has larger frames.
func TestIdleWatchesAreSmall(t *testing.T) {
	const watches, stack, heap = 400, 22 << 10, 24 << 10
	p := start(t, t.TempDir(), newIssuer(t))
	watch := func() {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(p.url("--listen-http"), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		fmt.Fprintf(conn, "GET /apis/events.k8s.io/v1/namespaces/default/events?watch=true&allowWatchBookmarks=true&resourceVersion=1 HTTP/1.1\r\n"+
			"Host: x\r\nAuthorization: Bearer %s\r\n\r\n", p.token)
		resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
	}
	inUse := func() (stacks, objects uint64) {
		runtime.GC() // which makes stacks smaller that have become too large
		runtime.GC()
		used := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(used)
		return used[0].Value.Uint64(), used[1].Value.Uint64()
	}
	watch() // what the first one makes stays
	stacks, objects := inUse()
	for range watches {
		watch()
	}
	moreStacks, moreObjects := inUse()
	if n := (moreStacks - stacks) / watches; n > stack {
		t.Errorf("the stacks of an idle watch have %d bytes", n)
	}
	if n := (moreObjects - objects) / watches; n > heap {
		t.Errorf("an idle watch has %d bytes beside its stacks", n)
	}
}
