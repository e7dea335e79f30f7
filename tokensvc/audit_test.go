package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRequestID: the id that a caller gives to a request is in the answer, in the audit line and in the access line.
func TestRequestID(t *testing.T) {
	t.Parallel()
	r := start(t, "--clients-file", clientsFile(t))
	req, err := http.NewRequestWithContext(t.Context(), "POST", r.api+"/oauth2/token", strings.NewReader(demoForm))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("X-Request-Id", "walk-1")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := resp.Header.Get("X-Request-Id"); resp.StatusCode != http.StatusOK || got != "walk-1" {
		t.Errorf("%s with id %q", resp.Status, got)
	}
	if err := r.stop(); err != nil { // all lines are written
		t.Fatal(err)
	}
	got := map[string]string{}
	for text := range strings.Lines(r.log()) {
		var line struct {
			Msg string
			ID  string `json:"request_id"`
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if line.ID != "" {
			got[line.Msg] = line.ID
		}
	}
	if diff := cmp.Diff(map[string]string{"token request": "walk-1", "request": "walk-1"}, got); diff != "" {
		t.Errorf("ids of the lines (-want +got):\n%s", diff)
	}
}
