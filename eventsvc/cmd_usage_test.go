package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/store/usage"
)

// TestUsage: the command shows who writes most, and says the same of the files as of the running service.
func TestUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, dir, newIssuer(t), "--max-bytes=64MiB")
	for n := range 9 {
		body := strings.Replace(newEvent(fmt.Sprintf("usage-%d", n)), `"Normal"`, `"Warning"`, 1)
		if n < 6 {
			body = newEvent(fmt.Sprintf("usage-%d", n))
		}
		if code, object := p.do("POST", eventsPath, body); code != 201 {
			t.Fatal(code, object)
		}
	}
	names := func(parts []usage.Part) (all []string) {
		for _, part := range parts {
			all = append(all, fmt.Sprintf("%s %d", part.Name, part.Events))
		}
		return all
	}
	at := []string{"--data-dir=" + dir, "--listen-admin=" + strings.TrimPrefix(p.url("--listen-admin"), "http://")}
	online := decoded[usage.Breakdown](t, command(t, 0, append([]string{"usage", "-o", "json"}, at...)...))
	if text := command(t, 0, append([]string{"usage"}, at...)...); !strings.Contains(text, "REPORTER") || !strings.Contains(text, "9 events of") ||
		!strings.Contains(text, "at the limit of 64.0 MiB") || !strings.Contains(text, "the oldest event is ") {
		t.Error(text)
	}
	rules := "--rules-file=" + writeFile(t, "rules.yaml", "- {name: noise, where: type=Normal, drop: true}\n- {name: rest, keep: 1h}\n")
	withRules := decoded[usage.Breakdown](t, command(t, 0, append([]string{"usage", "-o", "json", rules}, at...)...))
	if text := command(t, 0, append([]string{"usage", rules}, at...)...); !strings.Contains(text, "WOULD SAVE") || !strings.Contains(text, "6 events, ") {
		t.Error(text)
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(withRules.Rules, decoded[usage.Breakdown](t, command(t, 0, append([]string{"usage", "-o", "json", rules}, at...)...)).Rules); diff != "" || len(withRules.Rules) != 2 ||
		withRules.Rules[0].SavedEvents != 6 || withRules.Rules[1].Events != 3 || withRules.Rules[1].SavedEvents != 0 {
		t.Errorf("%+v\n%s", withRules.Rules, diff)
	}
	offline := decoded[usage.Breakdown](t, command(t, 0, append([]string{"usage", "-o", "json", "--max-bytes=1GiB"}, at...)...))
	for place, got := range map[string]usage.Breakdown{"service": online, "files": offline} {
		if diff := cmp.Diff([]string{"Normal 6", "Warning 3"}, names(got.Types)); diff != "" {
			t.Errorf("%s: types %s", place, diff)
		}
		if diff := cmp.Diff([]string{"default 9"}, names(got.Namespaces)); diff != "" {
			t.Errorf("%s: namespaces %s", place, diff)
		}
		if len(got.Reporters) != 1 || got.Reporters[0].Bytes != got.LiveBytes || got.LiveBytes == 0 {
			t.Errorf("%s: reporters %+v of %d bytes", place, got.Reporters, got.LiveBytes)
		}
	}
	if online.Stats.MaxBytes != 64<<20 || offline.Stats.MaxBytes != 1<<30 {
		t.Errorf("limits: %d, %d", online.Stats.MaxBytes, offline.Stats.MaxBytes)
	}
	if text := command(t, 2, "usage", "--data-dir="+t.TempDir()); !strings.Contains(text, "holds no events") {
		t.Error(text)
	}
}
