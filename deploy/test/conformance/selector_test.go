package conformance_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFieldSelectors goes through every label of both views (2.1, 2.3).
func TestFieldSelectors(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	other := ns + "-2"
	s.post(t, in(eventsV1, ns), newEvent(ns, "new", `{"reason":"R1","type":"Warning","reportingController":"example.com/one",
		"regarding":{"kind":"Node","name":"n1","uid":"u1","apiVersion":"v9","resourceVersion":"77","fieldPath":"spec.containers{c}"}}`)).expect(http.StatusCreated)
	s.post(t, in(coreV1, ns), oldEvent(ns, "old")).expect(http.StatusCreated)
	s.create(t, other, "new")
	for _, c := range []struct{ group, selector, want string }{
		{eventsV1, "metadata.name=new", "new"},
		{eventsV1, "metadata.namespace=" + ns, "new old"},
		{eventsV1, "metadata.namespace=" + other, ""},
		{eventsV1, "reason=R1", "new"},
		{eventsV1, "reason==R1", "new"},
		{eventsV1, "reason!=R1", "old"},
		{eventsV1, "type=Warning", "new"},
		{eventsV1, "reportingController=example.com/one", "new"},
		{eventsV1, "reportingController=", "old"},
		{eventsV1, "regarding.kind=Node", "new"},
		{eventsV1, "regarding.namespace=" + ns, "new old"},
		{eventsV1, "regarding.name=n1", "new"},
		{eventsV1, "regarding.uid=u1", "new"},
		{eventsV1, "regarding.apiVersion=v9", "new"},
		{eventsV1, "regarding.resourceVersion=77", "new"},
		{eventsV1, `regarding.fieldPath=spec.containers{c}`, "new"},
		{eventsV1, "type=Warning,reason!=R1", ""},
		{eventsV1, "metadata.name!=new", "old"},
		{eventsV1, "", "new old"},
		{coreV1, "metadata.name=old", "old"},
		{coreV1, "metadata.namespace=" + ns, "new old"},
		{coreV1, "reason=Because", "old"},
		{coreV1, "type=Normal", "old"},
		{coreV1, "reportingComponent=example.com/one", "new"},
		{coreV1, "source=kubelet", "old"},
		{coreV1, "source=example.com/one", "new"}, // falls back to the controller
		{coreV1, "involvedObject.kind=Pod", "old"},
		{coreV1, "involvedObject.namespace=" + ns, "new old"},
		{coreV1, "involvedObject.name=p1", "old"},
		{coreV1, "involvedObject.uid=u1", "new"},
		{coreV1, "involvedObject.apiVersion=v1", "old"},
		{coreV1, "involvedObject.resourceVersion=77", "new"},
		{coreV1, `involvedObject.fieldPath=spec.containers{c}`, "new"},
	} {
		t.Run(c.group+" "+c.selector, func(t *testing.T) {
			list := s.get(t, in(c.group, ns)+"?fieldSelector="+url.QueryEscape(c.selector)).expect(http.StatusOK).object()
			if got := strings.Join(list.names(), " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	t.Run("narrows all namespaces", func(t *testing.T) {
		list := s.get(t, eventsV1+"/events?fieldSelector=metadata.namespace%3D"+other).expect(http.StatusOK).object()
		if got := strings.Join(list.names(), " "); got != "new" {
			t.Errorf("got %q", got)
		}
		list = s.get(t, eventsV1+"/events?fieldSelector=metadata.name%3Dnew").expect(http.StatusOK).object()
		if got := strings.Join(list.names(), " "); got != "new new" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("escaped values", func(t *testing.T) {
		s.create(t, ns, "odd", `{"reason":"a,b=c\\d"}`)
		list := s.get(t, in(eventsV1, ns)+"?fieldSelector="+url.QueryEscape(`reason=a\,b\=c\\d`)).expect(http.StatusOK).object()
		if got := strings.Join(list.names(), " "); got != "odd" {
			t.Errorf("got %q", got)
		}
	})
	bad := func(group, selector string) call {
		return call{method: "GET", path: in(group, ns) + "?fieldSelector=" + url.QueryEscape(selector)}
	}
	checkRefusals(t, s, []refusal{
		{name: "unknown label", call: bad(eventsV1, "foo=bar"), code: 400, reason: metav1.StatusReasonBadRequest, message: "field label not supported: foo"},
		{name: "core name on the events view", call: bad(eventsV1, "involvedObject.name=x"), code: 400, reason: metav1.StatusReasonBadRequest, message: "field label not supported: involvedObject.name"},
		{name: "source on the events view", call: bad(eventsV1, "source=x"), code: 400, reason: metav1.StatusReasonBadRequest, message: "field label not supported: source"},
		{name: "events name on core", call: bad(coreV1, "regarding.name=x"), code: 400, reason: metav1.StatusReasonBadRequest, message: "field label not supported: regarding.name"},
		{name: "controller on core", call: bad(coreV1, "reportingController=x"), code: 400, reason: metav1.StatusReasonBadRequest, message: "field label not supported: reportingController"},
		{name: "syntax", call: bad(eventsV1, "bogus"), code: 400, reason: metav1.StatusReasonBadRequest, message: "invalid selector: 'bogus'; can't understand 'bogus'"},
		{name: "old watch path, other name", call: call{method: "GET", path: eventsV1 + "/watch/namespaces/" + ns + "/events/new?fieldSelector=metadata.name%3Dold"}, code: 400, reason: metav1.StatusReasonBadRequest,
			message: "fieldSelector metadata.name doesn't match requested name"},
	})
}

// TestLabelSelectors is about the grammar of labels (2.2).
func TestLabelSelectors(t *testing.T) {
	t.Parallel()
	s, ns := start(t), namespace(t)
	s.create(t, ns, "a", `{"metadata":{"labels":{"app":"web","n":"5"}}}`)
	s.create(t, ns, "b", `{"metadata":{"labels":{"app":"db"}}}`)
	s.create(t, ns, "c")
	for selector, want := range map[string]string{
		"app=web": "a", "app==db": "b", "app!=web": "b c", "app in (web,db)": "a b", "app notin (web)": "b c",
		"app": "a b", "!app": "c", "n>4": "a", "n<5": "", "app=web,n=5": "a", "app=web,n=6": "", "": "a b c",
	} {
		t.Run(selector, func(t *testing.T) {
			list := s.get(t, in(eventsV1, ns)+"?labelSelector="+url.QueryEscape(selector)).expect(http.StatusOK).object()
			if got := strings.Join(list.names(), " "); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	refusal{call: call{method: "GET", path: in(eventsV1, ns) + "?labelSelector=" + url.QueryEscape("app in (web")},
		code: 400, reason: metav1.StatusReasonBadRequest, message: "unable to parse requirement: found '', expected: ',' or ')'"}.check(t, s)
}
