package conformance_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestKubectlWrite is everything that changes events, over restarts.
func TestKubectlWrite(t *testing.T) {
	t.Parallel()
	overKubectls(t, func(t *testing.T, s *server, k *kubectl) {
		labels := func(t *testing.T, name, want string) {
			t.Helper()
			equalJSON(t, "labels of "+name, s.get(t, in(eventsV1, "team", name)).object().at("metadata.labels"), want)
		}
		t.Run("create", func(t *testing.T) {
			k.want(t, args("create -f", k.file(t, "c.json", manifest("c"))), "event.events.k8s.io/c created")
			core := oldEvent("team", "cc", `{"kind":"Event","apiVersion":"v1"}`)
			k.want(t, args("create -f", k.file(t, "cc.json", core)), "event/cc created")
			k.want(t, args("create --dry-run=server -f", k.file(t, "dry.json", manifest("dry"))), "event.events.k8s.io/dry created (server dry run)")
			s.get(t, in(eventsV1, "team", "dry")).expect(404)
			if _, stderr, code := k.try(t, args("create -f", k.file(t, "c.json", manifest("c")))...); code != 1 || !strings.Contains(stderr, "Error from server (AlreadyExists)") {
				t.Errorf("code %d: %s", code, stderr)
			}
			if _, stderr, code := k.try(t, args("create -f", k.file(t, "bad.json", manifest("bad", `{"type":"Odd"}`)))...); code != 1 || !strings.Contains(stderr, `The Event "bad" is invalid: type: Invalid value: "": has invalid value: Odd`) {
				t.Errorf("code %d: %s", code, stderr)
			}
			if _, stderr, code := k.try(t, args("create -f", k.file(t, "bad.json", manifest("bad", `{"bogus":1}`)))...); code != 1 || !strings.Contains(stderr, `unknown field "bogus"`) {
				t.Errorf("code %d: %s", code, stderr)
			}
		})
		t.Run("apply", func(t *testing.T) {
			file := k.file(t, "a.json", manifest("a"))
			k.want(t, args("apply -f", file), "event.events.k8s.io/a created")
			s.restart(t)
			k.want(t, args("apply -f", file), "event.events.k8s.io/a unchanged")
			k.file(t, "a.json", manifest("a", `{"metadata":{"labels":{"x":"1"}}}`))
			if out, _, code := k.try(t, args("diff -f", file)...); code != 1 || !strings.Contains(out, "+    x: \"1\"") {
				t.Errorf("diff: code %d:\n%s", code, out)
			}
			k.want(t, args("apply --dry-run=server -f", file), "configured (server dry run)")
			labels(t, "a", `null`)
			k.want(t, args("apply -f", file), "event.events.k8s.io/a configured")
			labels(t, "a", `{"x":"1"}`)
			if out, stderr, code := k.try(t, args("diff -f", file)...); code != 0 {
				t.Errorf("diff of nothing: code %d:\n%s%s", code, out, stderr)
			}
		})
		t.Run("apply on the server", func(t *testing.T) {
			file := k.file(t, "s.json", manifest("s", `{"metadata":{"labels":{"x":"1"}}}`))
			k.want(t, args("apply --server-side -f", file), "event.events.k8s.io/s serverside-applied")
			s.restart(t)
			k.want(t, args("apply --server-side -f", file), "event.events.k8s.io/s serverside-applied")
			next := k.file(t, "s1.json", manifest("s", `{"metadata":{"labels":{"x":"9"}}}`))
			if out, _, code := k.try(t, args("diff --server-side -f", next)...); code != 1 || !strings.Contains(out, "+    x: \"9\"") {
				t.Errorf("diff: code %d:\n%s", code, out)
			}
			mine := k.file(t, "s2.json", `{"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{"name":"s","labels":{"x":"2"}}}`)
			if _, stderr, code := k.try(t, args("apply --server-side --field-manager=other -f", mine)...); code != 1 || !strings.Contains(stderr, `conflict with "kubectl": .metadata.labels.x`) {
				t.Errorf("code %d: %s", code, stderr)
			}
			k.want(t, args("apply --server-side --field-manager=other --force-conflicts -f", mine), "serverside-applied")
			labels(t, "s", `{"x":"2"}`)
			// One that was applied by the client first is taken over.
			k.want(t, args("apply --server-side -f", k.file(t, "a.json", manifest("a", `{"metadata":{"labels":{"x":"3"}}}`))), "serverside-applied")
			labels(t, "a", `{"x":"3"}`)
		})
		t.Run("patch", func(t *testing.T) {
			k.run(t, args("create -f", k.file(t, "p.json", manifest("p")))...)
			s.restart(t)
			for kind, patch := range map[string]string{
				"merge": `{"metadata":{"labels":{"merge":"1"}}}`, "strategic": `{"metadata":{"labels":{"strategic":"1"}}}`, "json": `[{"op":"add","path":"/metadata/annotations","value":{"a":"b"}}]`,
			} {
				k.want(t, args("patch "+group+" p --type="+kind+" -p", patch), "event.events.k8s.io/p patched")
			}
			labels(t, "p", `{"merge":"1","strategic":"1"}`)
			k.want(t, args("patch event p -p", `{"message":"through core"}`), "event/p patched")
			if _, stderr, code := k.try(t, args("patch "+group+" p --type=merge -p", `{"note":"x"}`)...); code != 1 || !strings.Contains(stderr, "field is immutable") {
				t.Errorf("code %d: %s", code, stderr)
			}
		})
		t.Run("times and numbers", func(t *testing.T) {
			k.want(t, args("create -f", k.file(t, "t.json", manifest("t", `{"eventTime":"2026-01-02T03:04:05Z"}`))), "event.events.k8s.io/t created")
			k.want(t, args("get "+group+" t -o jsonpath={.eventTime}"), "2026-01-02T03:04:05.000000Z")
			k.want(t, args("apply --server-side -f", k.file(t, "t1.json", manifest("t", `{"eventTime":"2026-01-02T03:04:05.000000001Z"}`))), "serverside-applied")
			for name, command := range map[string][]string{
				"strategic": args("patch event t --type=strategic -p", `{"count":5000000000}`), "merge": args("patch event t --type=merge -p", `{"count":5000000000}`),
				"apply":  args("apply --server-side --validate=false -f", k.file(t, "t2.json", manifest("t", `{"deprecatedCount":5000000000}`))),
				"create": args("create --validate=false -f", k.file(t, "t3.json", manifest("t3", `{"series":{"count":5000000000,"lastObservedTime":"2026-01-02T03:04:05Z"}}`))),
			} {
				if _, stderr, code := k.try(t, command...); code != 1 || !strings.Contains(stderr, "cannot unmarshal number 5000000000") {
					t.Errorf("%s: code %d: %s", name, code, stderr)
				}
			}
		})
		t.Run("delete raw", func(t *testing.T) {
			k.run(t, args("create -f", k.file(t, "raw.json", manifest("raw")))...)
			body := k.file(t, "options.json", `{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}`)
			k.want(t, args("delete -f", body, "--raw", in(eventsV1, "team", "raw")+"?dryRun=All"), `"status":"Success"`)
			k.want(t, args("get "+group+" raw -o name"), "event.events.k8s.io/raw")
			k.want(t, args("delete -f", body, "--raw", in(eventsV1, "team", "raw")), `"status":"Success"`)
		})
		t.Run("label and annotate", func(t *testing.T) {
			k.run(t, args("create -f", k.file(t, "l.json", manifest("l")))...)
			k.want(t, args("label "+group+" l a=1 b=2"), "event.events.k8s.io/l labeled")
			k.want(t, args("label events l a=3 --overwrite"), "labeled")
			k.want(t, args("label "+group+" l b-"), "unlabeled")
			labels(t, "l", `{"a":"3"}`)
			k.want(t, args("label "+group+" -l a=3 c=4"), "labeled")
			k.want(t, args("annotate "+group+" l x=y"), "event.events.k8s.io/l annotated")
			equalJSON(t, "annotations", s.get(t, in(eventsV1, "team", "l")).object().at("metadata.annotations"), `{"x":"y"}`)
		})
		t.Run("replace and edit", func(t *testing.T) {
			k.run(t, args("create -f", k.file(t, "r.json", manifest("r")))...)
			k.want(t, args("replace -f", k.file(t, "r.json", manifest("r", `{"metadata":{"labels":{"r":"1"}}}`))), "event.events.k8s.io/r replaced")
			labels(t, "r", `{"r":"1"}`)
			k.want(t, args("replace --force -f", k.file(t, "r.json", manifest("r", `{"note":"another one"}`))), "replaced")
			k.env = append(k.env, "KUBE_EDITOR=sed -i s/another/other/")
			k.want(t, args("edit event r"), "event/r edited")
			if got := s.get(t, in(eventsV1, "team", "r")).object().text("note"); got != "other one" {
				t.Errorf("note %q", got)
			}
		})
		t.Run("delete", func(t *testing.T) {
			s.restart(t)
			k.want(t, args("delete "+group+" l"), `event.events.k8s.io "l" deleted`)
			s.get(t, in(eventsV1, "team", "l")).expect(404)
			k.want(t, args("delete -f", filepath.Join(k.home, "c.json")), "deleted")
			k.want(t, args("delete events -l r"), "No resources found")
			k.want(t, args("delete event none --ignore-not-found"))
			k.want(t, args("delete events --field-selector metadata.name=cc"), `event "cc" deleted`)
			k.want(t, args("delete events --all"), "deleted")
			if left := s.get(t, in(eventsV1, "team")).object().names(); len(left) > 0 {
				t.Errorf("left are %v", left)
			}
		})
	})
}
