package discovery_test

import (
	"encoding/json"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/api/apitest"
)

// kinds are the resources that discovery names without verbs, by the path of
// their group and version.
func kinds(t *testing.T, w *apitest.World) map[string][]metav1.APIResource {
	t.Helper()
	named := map[string][]metav1.APIResource{}
	for _, path := range []string{
		"/api/v1", "/apis/apps/v1", "/apis/autoscaling/v2", "/apis/batch/v1", "/apis/networking.k8s.io/v1", "/apis/policy/v1", "/apis/storage.k8s.io/v1",
	} {
		var list metav1.APIResourceList
		if err := json.Unmarshal(w.Do("GET", path, "").Must(200).Body, &list); err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if len(r.Verbs) == 0 {
				named[path] = append(named[path], r)
			}
		}
		if len(named[path]) == 0 {
			t.Errorf("%s names nothing", path)
		}
	}
	return named
}

// TestKindsAreNamedOnly: every read of a kind that events are about is answered 404, as
// if there were no such kind, and every write 405, with a message that says why.
func TestKindsAreNamedOnly(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	for group, resources := range kinds(t, w) {
		for _, r := range resources {
			paths := []string{group + "/" + r.Name, group + "/" + r.Name + "/x"}
			if r.Namespaced {
				paths = append(paths, group+"/namespaces/team/"+r.Name, group+"/namespaces/team/"+r.Name+"/x")
			}
			of := paths[len(paths)-1]
			paths = append(paths, of+"/", of+"/status", of+"/scale", of+"/log", of+"/exec", of+"/proxy/healthz")
			for _, path := range paths {
				st := w.Do("GET", path, "").Must(404).Status()
				apitest.Equal(t, st.Reason, metav1.StatusReasonNotFound)
				w.Do("GET", path+"?watch=true&labelSelector=a%3Db", "").Must(404)
				w.Do("GET", path, "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Must(404)
				w.Do("HEAD", path, "").Must(404)
				for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
					a := w.Do(method, path, "").Must(405)
					if _, ok := a.Header["Allow"]; !ok || a.Header.Get("Allow") != "" {
						t.Errorf("%s %s: Allow %q", method, path, a.Header["Allow"])
					}
				}
				w.Do("GET", path, "", "Authorization", "").Must(401)
			}
			review := authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: r.Name},
			}}
			body, err := json.Marshal(review)
			if err != nil {
				t.Fatal(err)
			}
			a := w.Do("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", string(body)).Must(201)
			apitest.Equal(t, a.At("status.allowed"), any(false))
		}
	}
	for method, reason := range map[string]metav1.StatusReason{"GET": metav1.StatusReasonNotFound, "DELETE": metav1.StatusReasonMethodNotAllowed} {
		st := w.Do(method, "/apis/apps/v1/namespaces/team/deployments/x", "").Status()
		apitest.Equal(t, st.Message, `deployments.apps are not stored here: this server stores events only, `+
			`and names the resources that events are about so that "kubectl events --for" finds their events`)
		apitest.Equal(t, st.Reason, reason)
	}
	w.Do("GET", "/api/v1/watch/pods", "").Must(404)
	w.Do("GET", "/api/v1/watch/namespaces/team/pods/x", "").Must(404)
	w.Do("GET", "/apis/apps/v1/namespaces/team/widgets", "").Must(404)
	w.Do("GET", "/apis/apps/v2", "").Must(404)
}

// TestKindsAreNotRules: what a caller may do is about events and namespaces.
func TestKindsAreNotRules(t *testing.T) {
	t.Parallel()
	w := apitest.New(t)
	a := w.Do("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", `{"spec":{"namespace":"team"}}`).Must(201)
	var review authorizationv1.SelfSubjectRulesReview
	if err := json.Unmarshal(a.Body, &review); err != nil {
		t.Fatal(err)
	}
	for _, rule := range review.Status.ResourceRules {
		switch rule.APIGroups[0] {
		case "", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io":
		default:
			t.Errorf("rule %+v", rule)
		}
	}
}
