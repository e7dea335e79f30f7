package conformance_test

import (
	"strings"
	"testing"
)

// TestKubectlGet is everything that reads, from what was written before a
// restart.
func TestKubectlGet(t *testing.T) {
	t.Parallel()
	overKubectls(t, func(t *testing.T, s *server, k *kubectl) {
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			s.create(t, "team", name, `{"metadata":{"labels":{"app":"`+name+`"}},"note":"the note of `+name+`"}`)
		}
		s.create(t, "other", "f", `{"type":"Warning"}`)
		s.restart(t)

		t.Run("table", func(t *testing.T) {
			out := k.want(t, args("get events"), "LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE", "pod/p1", "the note of a")
			if n := strings.Count(out, "\n"); n != 6 {
				t.Errorf("%d lines:\n%s", n, out)
			}
			k.want(t, args("get "+group), "LAST SEEN", "the note of e")
			k.want(t, args("get ev a"), "the note of a")
			k.want(t, args("get events -o wide"), "SUBOBJECT", "SOURCE", "FIRST SEEN", "COUNT", "NAME", "example.com/ctl, ctl-1")
			k.want(t, args("get events -A"), "NAMESPACE", "team ", "other ")
			k.want(t, args("get events --show-labels"), "LABELS", "app=a")
			k.want(t, args("get events -L app"), "APP")
			if out := k.run(t, args("get events --no-headers")...); strings.Contains(out, "LAST SEEN") {
				t.Errorf("headers in\n%s", out)
			}
			k.want(t, args("get events --sort-by=.metadata.name"), "the note of a")
		})
		t.Run("other forms", func(t *testing.T) {
			k.want(t, args("get "+group+" a -o json"), `"apiVersion": "events.k8s.io/v1"`, `"note": "the note of a"`)
			k.want(t, args("get "+group+" a -o yaml"), "apiVersion: events.k8s.io/v1", "note: the note of a")
			k.want(t, args("get event a -o yaml"), "apiVersion: v1", "message: the note of a")
			k.want(t, args("get events -o name"), "event/a\nevent/b\n")
			k.want(t, args("get "+group+" -o name"), "event.events.k8s.io/a\n")
			k.want(t, args("get events -o jsonpath={.items[*].metadata.name}"), "a b c d e")
			k.want(t, args("get events -o custom-columns=N:.metadata.name,R:.reason"), "N ", "a ", "Because")
			k.want(t, []string{"get", "events", "-o", "go-template={{range .items}}{{.message}};{{end}}"}, "the note of a;the note of b;")
			k.want(t, args("get events -o json"), `"kind": "List"`)
			k.want(t, args("get "+group+" a -o yaml --show-managed-fields"), "managedFields:", "manager: wire")
			k.want(t, args("get --raw /apis/events.k8s.io/v1/namespaces/team/events/a"), `"kind":"Event"`)
		})
		t.Run("chunks and selectors", func(t *testing.T) {
			k.want(t, args("get events --chunk-size=2 -o name"), "event/a\nevent/b\nevent/c\nevent/d\nevent/e\n")
			k.want(t, args("get events --chunk-size=2"), "the note of e")
			k.want(t, []string{"get", "events", "-l", "app in (a,b)", "-o", "name"}, "event/a\nevent/b\n")
			k.want(t, args("get events --field-selector metadata.name=c -o name"), "event/c\n")
			k.want(t, args("get "+group+" --field-selector regarding.name=p1,type!=Warning -A -o name"), "event.events.k8s.io/e\n")
			k.want(t, args("get events -A --field-selector involvedObject.kind=Pod,type=Warning -o name"), "event/f\n")
		})
		t.Run("describe", func(t *testing.T) {
			k.want(t, args("describe event a"), "Name:", "the note of a", "Involved Object:")
			k.want(t, args("describe "+group+" a"), "Name:", "the note of a", "Regarding:")
		})
		t.Run("events", func(t *testing.T) {
			k.want(t, args("events"), "LAST SEEN", "Pod/p1", "the note of a")
			k.want(t, args("events -A"), "NAMESPACE", "other")
			uid := s.get(t, in(coreV1, "team", "a")).object().text("metadata.uid")
			s.create(t, "team", "about", `{"regarding":{"kind":"Event","name":"a","uid":"`+uid+`"},"note":"about an event"}`)
			if out := k.want(t, args("events --for event/a"), "about an event"); strings.Contains(out, "the note of") {
				t.Errorf("events of event a:\n%s", out)
			}
			k.want(t, args("describe event a"), "Events:", "about an event")
			s.delete(t, in(eventsV1, "team", "about"), "").expect(200)
			k.want(t, args("events -A --types=Warning"), "other")
			k.want(t, args("events -o json"), `"kind": "EventList"`)
			k.want(t, args("events --for event/none"))
		})
		t.Run("documents", func(t *testing.T) {
			k.want(t, args("explain events"), "KIND:", "involvedObject", "VERSION:")
			k.want(t, args("explain events --api-version=events.k8s.io/v1"), "GROUP:", "events.k8s.io", "regarding", "reportingController")
			k.want(t, args("explain event.regarding --api-version=events.k8s.io/v1 --recursive"), "fieldPath")
			k.want(t, args("api-resources"), "events", "ev", "events.k8s.io/v1")
			k.want(t, args("api-resources --api-group=events.k8s.io -o wide"), "deletecollection")
			k.want(t, args("api-versions"), "events.k8s.io/v1\n", "v1\n")
			k.want(t, args("version"), "Server Version: v1.37")
		})
		t.Run("errors", func(t *testing.T) {
			if _, stderr, code := k.try(t, args("get event none")...); code != 1 || !strings.Contains(stderr, `Error from server (NotFound): events "none" not found`) {
				t.Errorf("code %d: %s", code, stderr)
			}
			if _, stderr, code := k.try(t, args("get events --field-selector foo=bar")...); code != 1 || !strings.Contains(stderr, `field label not supported: foo`) {
				t.Errorf("code %d: %s", code, stderr)
			}
		})
	})
}

// TestKubectlAuth asks who may do what.
func TestKubectlAuth(t *testing.T) {
	t.Parallel()
	overKubectls(t, func(t *testing.T, s *server, k *kubectl) {
		k.want(t, args("auth can-i create events"), "yes\n")
		k.want(t, args("auth can-i delete "+group+" -n other"), "yes\n")
		k.want(t, args("auth can-i --list"), "events", "[*]")
		k.want(t, args("auth whoami"), "tester")
	})
}

// TestKubectlImpersonates: a command that asks to act as another user is refused, and does nothing. kubectl itself
// refuses groups and uids without a user.
func TestKubectlImpersonates(t *testing.T) {
	t.Parallel()
	overKubectls(t, func(t *testing.T, s *server, k *kubectl) {
		s.create(t, "team", "a")
		k.want(t, args("get events"), "a") // so that kubectl remembers the groups: it does not show the text of a 403 to that request
		const (
			user    = `"nobody" is forbidden: User "tester" cannot impersonate resource "users" in API group "" at the cluster scope: impersonation is not supported here: leave out --as`
			account = `"builder" is forbidden: User "tester" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "team"`
			without = `without impersonating a user`
		)
		for line, text := range map[string]string{
			"delete events a --as=nobody":                             user,
			"get events --as=nobody --as-group=system:masters":        user,
			"get events -A --as=nobody --as-uid=u":                    user,
			"label events a x=y --as=nobody":                          user,
			"auth can-i list events --as=nobody":                      user,
			"auth can-i --list --as=nobody":                           user,
			"auth whoami --as=nobody":                                 "you do not have permission to call it", // kubectl's words for a 403
			"get --raw /query/v1/events --as=nobody":                  user,
			"get --raw /loki/api/v1/labels --as=nobody":               user,
			"get --raw /apis --as=system:serviceaccount:team:builder": account,
			"delete events a --as-group=system:masters":               without,
			"delete events a --as-uid=u":                              without,
		} {
			out, stderr, code := k.try(t, args(line)...)
			if code == 0 || !strings.Contains(stderr, text) {
				t.Errorf("kubectl %s: exit code %d, no %q in\n%s%s", line, code, text, out, stderr)
			}
		}
		k.want(t, args("get events a -o name"), "a")
	})
}

// TestKubectlNamespaces lists the namespaces, which nobody had to declare.
func TestKubectlNamespaces(t *testing.T) {
	t.Parallel()
	overKubectls(t, func(t *testing.T, s *server, k *kubectl) {
		s.create(t, "team", "a")
		k.want(t, args("get namespaces"), "NAME", "STATUS", "AGE", "default", "kube-system", "team", "Active")
		k.want(t, args("get ns team -o yaml"), "kubernetes.io/metadata.name: team", "phase: Active")
	})
}

// TestKubectlWatch is everything that waits: kubectl wait goes on by itself
// over a restart, the others end with their watch.
func TestKubectlWatch(t *testing.T) {
	t.Parallel()
	overKubectls(t, func(t *testing.T, s *server, k *kubectl) {
		s.create(t, "team", "a", `{"note":"first note"}`)
		t.Run("get", func(t *testing.T) {
			out := k.follow(t, s, args("get events -w")...)
			out.want(t, "LAST SEEN", "first note")
			s.create(t, "team", "b", `{"note":"second note"}`)
			out.want(t, "second note")
			s.delete(t, in(eventsV1, "team", "b"), "").expect(200)
			out.want(t, "second note")
		})
		t.Run("get with what happened", func(t *testing.T) {
			out := k.follow(t, s, args("get "+group+" -w --output-watch-events")...)
			out.want(t, "EVENT", "ADDED ")
			s.patch(t, in(eventsV1, "team", "a"), typeMerge, `{"metadata":{"labels":{"a":"1"}}}`).expect(200)
			out.want(t, "MODIFIED ")
		})
		t.Run("only what comes", func(t *testing.T) {
			out := k.follow(t, s, args("get events --watch-only -o name")...)
			s.untilWatched(t, 1)
			s.create(t, "team", "only")
			out.want(t, "event/only")
		})
		t.Run("events", func(t *testing.T) {
			out := k.follow(t, s, args("events -w")...)
			out.want(t, "first note")
			s.create(t, "team", "c", `{"note":"third note"}`)
			out.want(t, "third note")
		})
		t.Run("wait for a field", func(t *testing.T) {
			out := k.follow(t, s, args("wait event/a --for=jsonpath={.message}=changed --timeout=60s")...)
			s.untilWatched(t, 1)
			s.restart(t)
			s.patch(t, in(coreV1, "team", "a"), typeMerge, `{"message":"changed"}`).expect(200)
			out.want(t, "event/a condition met")
		})
		t.Run("wait for the end", func(t *testing.T) {
			out := k.follow(t, s, args("wait "+group+" a --for=delete --timeout=60s")...)
			s.untilWatched(t, 1)
			s.delete(t, in(eventsV1, "team", "a"), "").expect(200)
			out.want(t, "event.events.k8s.io/a condition met")
		})
	})
}
