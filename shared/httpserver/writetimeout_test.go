package httpserver

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// TestOneWriteForEachFlush: the bytes between two flushes are one write to the connection, if they are few. All bytes
// arrive in order, including those that are not flushed.
func TestOneWriteForEachFlush(t *testing.T) {
	t.Parallel()
	pieces := []int{1, 3000, 2500, heldBytes - 100, 3 * heldBytes, 3000, 10}
	synctest.Test(t, func(t *testing.T) {
		conn := client(t, Endpoint{Streaming: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for i, n := range pieces {
				_, _ = io.WriteString(w, strings.Repeat(string(rune('a'+i)), n))
				_ = http.NewResponseController(w).Flush()
			}
			_, _ = io.WriteString(w, strings.Repeat("y", 3000)) // buffered, and not flushed
			_, _ = io.WriteString(w, "z")
		})})
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		var all []byte
		var writes []string // the letters that each write begins
		seen := ""
		for buf := make([]byte, 4*heldBytes); !bytes.HasSuffix(all, []byte("\r\n0\r\n\r\n")); { // one read of a pipe returns bytes of one write
			n, err := conn.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, buf[:n]...)
			letters := ""
			for _, letter := range "abcdefgyz" {
				if strings.Contains(string(buf[:n]), strings.Repeat(string(letter), 10)) && !strings.ContainsRune(seen, letter) {
					letters += string(letter)
				}
			}
			seen += letters
			writes = append(writes, letters)
		}
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(all)), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		got, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		for i, n := range pieces {
			want += strings.Repeat(string(rune('a'+i)), n)
		}
		if diff := cmp.Diff(want+strings.Repeat("y", 3000)+"z", string(got)); diff != "" {
			t.Errorf("body (-want +got):\n%.1000s", diff)
		}
		// The long piece takes several writes, and the end is a write of its own.
		if diff := cmp.Diff([]string{"", "b", "c", "d"}, writes[:4]); diff != "" {
			t.Errorf("letters that each write brings (-want +got):\n%s\nall: %q", diff, writes)
		}
	})
}
