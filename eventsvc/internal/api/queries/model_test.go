package queries_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/eventsvc/internal/api"
	"tidings.example/eventsvc/internal/api/apitest"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/query/search"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/shared/randtest"
)

// history is the naive model of queries: every version that was ever written, decoded with
// the types of Kubernetes. Its answers are found by looking at all of them.
type history struct {
	w        *apitest.World
	r        *rand.Rand
	versions []version
	most     map[types.UID]int64 // the largest count that an event ever had
	exports  []string
	expired  int // events
	restored int // that were deleted, and imported again

	forgotten bool // what was superseded or deleted, of which dimensions are left
}

// version is one write.
type version struct {
	*eventsv1.Event
	revision   uint64
	gone       bool      // it is the deletion of the event
	first, at  time.Time // first is zero of a later version
	count, add int64
}

// instants returns when what a version adds was observed: of a first version that says when it came
// first and last, evenly in between.
func (v *version) instants() (out []time.Time) {
	for i := range v.add {
		at := v.at
		if last := v.add - 1; i < last && !v.first.IsZero() && v.first.Unix() < v.at.Unix() {
			at = time.Unix(v.first.Unix()+(v.at.Unix()-v.first.Unix())*i/last, 0).UTC()
		}
		out = append(out, at)
	}
	return out
}

// began is the first observation of all.
var began = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// spread is how much time the observations are spread over.
const spread = 60 * time.Hour

var (
	modelNamespaces = []string{"shop", "shop-test", "build", "kube-system"}
	modelReasons    = []string{"BackOff", "Pulled", "Killing", "Failed"}
	modelWords      = []string{"back-off", "Restarting", "failed", "container", "Ärger", "IMAGE", "x=1,y=2", "“quoted”"}
)

// body returns a random event in one of the two views: with a series, as the recorders of
// new clients write it, or with a count, as those of old clients.
func (h *history) body(name string, count int, at time.Time) (core bool, body string) {
	r := h.r
	labels := map[string]string{}
	if c := apitest.Pick(r, "", "c1", "c2"); c != "" {
		labels["tidings.example/cluster"] = c
	}
	if r.IntN(3) == 0 {
		labels["app"] = apitest.Pick(r, "a", "b")
	}
	words := make([]string, 1+r.IntN(4))
	for i := range words {
		words[i] = apitest.Pick(r, modelWords...)
	}
	object := map[string]any{"kind": apitest.Pick(r, "Pod", "Node"), "name": apitest.Pick(r, "p1", "p2"), "uid": apitest.Pick(r, "u1", "u2", "")}
	ev := map[string]any{
		"metadata": map[string]any{"name": name, "labels": labels}, "reason": apitest.Pick(r, modelReasons...), "type": apitest.Pick(r, "Normal", "Warning"),
	}
	note := strings.Join(words, " ")
	if core = r.IntN(2) == 0; core {
		second := at.Truncate(time.Second).Format(time.RFC3339)
		ev["message"], ev["involvedObject"], ev["count"], ev["lastTimestamp"] = note, object, count, second
		ev["source"] = map[string]any{"component": apitest.Pick(r, "kubelet", "scheduler")}
		if r.IntN(2) == 0 { // as a reporter of both forms sets them
			ev["eventTime"] = at.Add(-min(time.Hour, at.Sub(began))).Format("2006-01-02T15:04:05.000000Z07:00")
			ev["action"], ev["reportingInstance"], ev["reportingComponent"] = "Do", "i", "example.com/both"
		}
	} else {
		ev["note"], ev["regarding"], ev["action"], ev["reportingInstance"] = note, object, "Do", "i"
		ev["reportingController"] = apitest.Pick(r, "example.com/ctl", "kubelet")
		ev["eventTime"] = at.Format("2006-01-02T15:04:05.000000Z07:00")
		if count > 1 {
			ev["series"] = map[string]any{"count": count, "lastObservedTime": ev["eventTime"]}
		}
	}
	text, err := json.Marshal(ev)
	if err != nil {
		h.w.T.Fatal(err)
	}
	return core, string(text)
}

// write does one random write, and keeps what became of it.
func (h *history) write() {
	h.w.T.Helper()
	r := h.r
	namespace, name := apitest.Pick(r, modelNamespaces...), fmt.Sprintf("e%d", r.IntN(30))
	path := "/apis/events.k8s.io/v1/namespaces/" + namespace + "/events/" + name
	before := h.existing(h.w.DB.Revision())[namespace+"/"+name]
	at := began.Add(time.Duration(r.Int64N(int64(spread/time.Microsecond))) * time.Microsecond)
	if len(h.versions) == 0 {
		at = began
	}
	switch {
	case len(h.versions) > 20 && r.IntN(15) == 0:
		h.exports = append(h.exports, h.export())
		return
	case len(h.exports) > 0 && r.IntN(10) == 0:
		h.restore(apitest.Pick(r, h.exports...))
		return
	}
	switch {
	case before == nil:
		core, body := h.body(name, apitest.Pick(r, 1, 1, 3), at)
		to := "/apis/events.k8s.io/v1/namespaces/"
		if core {
			to = "/api/v1/namespaces/"
		}
		body = strings.Replace(body, `"kind":`, `"namespace":"`+namespace+`","kind":`, 1) // of the object: the only kind
		h.w.Do("POST", to+namespace+"/events", body).Must(201)
	case r.IntN(5) == 0:
		h.w.Do("DELETE", path, "").Must(200)
		h.versions = append(h.versions, version{Event: before.Event, revision: h.w.DB.Revision(), gone: true, count: before.count})
		return
	default:
		h.change(path, before, at)
	}
	h.keep(path, before)
}

// change patches an event: it was observed again, or something else about it changes.
func (h *history) change(path string, before *version, at time.Time) {
	h.w.T.Helper()
	patch := `{"metadata":{"labels":{"changed":"` + strconv.Itoa(h.r.IntN(1000)) + `"}}}`
	if h.r.IntN(3) > 0 {
		count := before.count + int64(h.r.IntN(5))
		patch = fmt.Sprintf(`{"series":{"count":%d,"lastObservedTime":%q}}`, max(2, count), at.Format("2006-01-02T15:04:05.000000Z07:00"))
		if !before.DeprecatedLastTimestamp.IsZero() {
			patch = fmt.Sprintf(`{"count":%d,"lastTimestamp":%q}`, count, at.Format(time.RFC3339))
			path = strings.Replace(path, "/apis/events.k8s.io/v1/", "/api/v1/", 1) // where they may change
		}
	}
	h.w.Do("PATCH", path, patch, "Content-Type", "application/merge-patch+json").Must(200)
}

// keep reads an event back as a new version.
func (h *history) keep(path string, before *version) {
	h.w.T.Helper()
	var ev eventsv1.Event
	if err := json.Unmarshal(h.w.Do("GET", path, "").Must(200).Body, &ev); err != nil {
		h.w.T.Fatal(err)
	}
	if before == nil || ev.ResourceVersion != before.ResourceVersion {
		h.add(&ev)
	}
}

// add adds a new version. It adds the observations that no version of the event has had before.
func (h *history) add(ev *eventsv1.Event) {
	v := version{Event: ev, count: max(1, int64(ev.DeprecatedCount))}
	v.revision, _ = strconv.ParseUint(ev.ResourceVersion, 10, 64)
	switch {
	case ev.Series != nil:
		v.at, v.count = ev.Series.LastObservedTime.Time, max(1, int64(ev.Series.Count))
	case !ev.DeprecatedLastTimestamp.IsZero():
		v.at = ev.DeprecatedLastTimestamp.Time
	default:
		v.at = ev.EventTime.Time
	}
	v.at, v.add = v.at.UTC(), max(0, v.count-h.most[ev.UID])
	h.most[ev.UID] += v.add
	if v.add == v.count { // nothing of it was counted before
		if v.first = ev.DeprecatedFirstTimestamp.Time; v.first.IsZero() {
			v.first = ev.EventTime.Time
		}
	}
	h.versions = append(h.versions, v)
}

// export returns an export of everything.
func (h *history) export() string {
	var out bytes.Buffer
	if err := h.admin().Export(h.w.T.Context(), 0, func(uint64, int64) io.Writer { return &out }); err != nil {
		h.w.T.Fatal(err)
	}
	return out.String()
}

func (h *history) admin() admin.Local { return admin.Local{DB: h.w.DB, Codec: h.w.Config.Codec} }

// restore imports some lines of an export, of events that exist, in this or another version, that were deleted, or that
// others of their name have followed.
func (h *history) restore(export string) {
	h.w.T.Helper()
	var lines strings.Builder
	for line := range strings.Lines(export) {
		if h.r.IntN(2) == 0 {
			lines.WriteString(line)
		}
	}
	before := h.w.DB.Revision()
	sum := apitest.ImportLines(h.w.T, h.admin(), lines.String())
	if sum.CompactRevision != 0 {
		h.w.T.Fatal(sum)
	}
	h.restored += int(sum.Created)
	h.follow(before, func(d store.Delivery) {
		if d.Type == store.Removed {
			h.gone(d)
			return
		}
		ev, err := h.w.Config.Codec.Event(d.Object.View())
		if err != nil {
			h.w.T.Fatal(err)
		}
		h.add(ev)
	})
}

// gone notes the deletion of an event.
func (h *history) gone(d store.Delivery) {
	v := h.existing(d.Revision)[d.Object.Key.String()]
	if v == nil {
		h.w.T.Fatalf("%s is deleted, but did not exist", d.Object.Key)
	}
	h.versions = append(h.versions, version{Event: v.Event, revision: d.Revision, gone: true, count: v.count})
}

// follow calls f with everything that was written after a revision.
func (h *history) follow(after uint64, f func(store.Delivery)) {
	h.w.T.Helper()
	last := h.w.DB.Revision()
	watcher, err := h.w.DB.Watch(h.w.T.Context(), store.WatchQuery{After: after})
	if err != nil {
		h.w.T.Fatal(err)
	}
	defer watcher.Close()
	for after < last {
		batch, err := watcher.Next(h.w.T.Context())
		if err != nil {
			h.w.T.Fatal(err)
		}
		for _, d := range batch.Changes {
			f(d)
		}
		after = batch.Revision
	}
}

// existing returns the events that there were at a revision.
func (h *history) existing(revision uint64) map[string]*version {
	out := map[string]*version{}
	for i := range h.versions {
		v := &h.versions[i]
		if v.revision > revision {
			break
		}
		if key := v.Namespace + "/" + v.Name; v.gone {
			delete(out, key)
		} else {
			out[key] = v
		}
	}
	return out
}

// dimension returns the value of a dimension, found in the event itself.
func (v *version) dimension(name string) string {
	switch name {
	case "type":
		return v.Type
	case "reason":
		return v.Reason
	case "kind":
		return v.Regarding.Kind
	case "namespace":
		return v.Namespace
	case "reporter":
		return cmp.Or(v.ReportingController, v.DeprecatedSource.Component)
	case "cluster":
		return v.Labels["tidings.example/cluster"]
	case "node":
		return v.node()
	case "pattern":
		return event.Pattern([]byte(v.Note), []byte(v.Regarding.Name), []byte(v.Namespace))
	}
	return strings.Join([]string{v.Regarding.Kind, v.Regarding.Namespace, v.Regarding.Name, string(v.Regarding.UID)}, "|")
}

// node is the node that an event says it happened on.
func (v *version) node() string {
	switch {
	case v.Regarding.Kind == "Node":
		return v.Regarding.Name
	case v.DeprecatedSource.Host != "":
		return v.DeprecatedSource.Host
	case v.ReportingController == "kubelet":
		return v.ReportingInstance
	}
	return ""
}

// has reports whether an event has a word in one of the texts in which words are searched, in any case.
func (v *version) has(word string) bool {
	return folds(v.Note, word) || folds(v.Reason, word) || folds(v.Regarding.Name, word) || folds(v.node(), word)
}

// question is a random query: as parameters, and as what they mean.
type question struct {
	url.Values
	from, to time.Time
	revision uint64
	terms    []func(*version) bool
	records  bool // some terms are not on dimensions
}

// condition is a term as text, and what it means.
type condition struct {
	field, label, text string
	records            bool
	means              func(*version) bool
}

// folds reports whether a note contains a text, in any case.
func folds(note, text string) bool {
	a, b := []rune(note), []rune(text)
	for i := range a {
		j := 0
		for j < len(b) && i+j < len(a) && sameLetter(a[i+j], b[j]) {
			j++
		}
		if j == len(b) {
			return true
		}
	}
	return false
}

func sameLetter(a, b rune) bool {
	for c := unicode.SimpleFold(a); c != a; c = unicode.SimpleFold(c) {
		if c == b {
			return true
		}
	}
	return a == b
}

// condition returns a random term.
func (h *history) condition() condition {
	r := h.r
	is := func(d, value string) func(*version) bool {
		return func(v *version) bool { return v.dimension(d) == value }
	}
	not := func(f func(*version) bool) func(*version) bool { return func(v *version) bool { return !f(v) } }
	reason, namespace, word := apitest.Pick(r, modelReasons...), apitest.Pick(r, modelNamespaces...), apitest.Pick(r, modelWords...)
	pattern := h.versions[r.IntN(len(h.versions))].dimension("pattern")
	cluster := "tidings.example/cluster"
	return apitest.Pick(
		r,
		condition{field: "reason=" + reason, means: is("reason", reason)},
		condition{field: "reason!=" + reason, means: not(is("reason", reason))},
		condition{field: "type=Warning", means: is("type", "Warning")},
		condition{field: "kind=Pod", means: is("kind", "Pod")},
		condition{field: "regarding.kind!=Pod", means: not(is("kind", "Pod"))},
		condition{field: "metadata.namespace=" + namespace, means: is("namespace", namespace)},
		condition{field: "namespace!=" + namespace, means: not(is("namespace", namespace))},
		condition{field: "reportingController=kubelet", means: is("reporter", "kubelet")},
		condition{field: "reporter=scheduler", means: is("reporter", "scheduler")},
		condition{field: "cluster=c1", means: is("cluster", "c1")},
		condition{field: "cluster=", means: is("cluster", "")},
		condition{label: cluster + " in (c1,c2)", means: not(is("cluster", ""))},
		condition{label: cluster + "!=c1", means: not(is("cluster", "c1"))},
		condition{label: cluster + " in (c1,)", records: true, means: is("cluster", "c1")}, // an empty label is not none
		condition{label: "!" + cluster, records: true, means: is("cluster", "")},
		condition{label: "app=a", records: true, means: func(v *version) bool { return v.Labels["app"] == "a" }},
		condition{field: "regarding.name=p1", records: true, means: func(v *version) bool { return v.Regarding.Name == "p1" }},
		condition{field: "regarding.uid!=u1", records: true, means: func(v *version) bool { return v.Regarding.UID != "u1" }},
		condition{field: "metadata.name=e3", records: true, means: func(v *version) bool { return v.Name == "e3" }},
		condition{text: `"` + strings.ToUpper(word) + `"`, records: true, means: func(v *version) bool { return v.has(word) }},
		condition{text: "FAILED back", records: true, means: func(v *version) bool { return v.has("failed") && v.has("back") }},
		condition{text: "note:failed -note:image", records: true, means: func(v *version) bool { return folds(v.Note, "failed") && !folds(v.Note, "image") }},
		condition{text: search.Term("pattern", pattern), records: true, means: is("pattern", pattern)},
		condition{text: "type:warning", means: is("type", "Warning")},
		condition{text: "NOT (reason:back* OR kind:node)", means: func(v *version) bool { return v.Reason != "BackOff" && v.Regarding.Kind != "Node" }},
		condition{text: "ns:shop,build node!=p1", means: func(v *version) bool {
			return (v.Namespace == "shop" || v.Namespace == "build") && v.node() != "p1"
		}},
		condition{text: "(" + reason + " OR name:p2) -label:app=a", records: true, means: func(v *version) bool {
			return (v.has(reason) || v.Regarding.Name == "p2") && v.Labels["app"] != "a"
		}},
		condition{text: "p1 object:Pod/p*", records: true, means: func(v *version) bool { return v.has("p1") && v.Regarding.Kind == "Pod" }},
	)
}

// question returns a random query.
func (h *history) question() *question {
	r := h.r
	q := &question{Values: url.Values{}, from: began, to: began.Add(spread + time.Hour), revision: h.w.DB.Revision()}
	if r.IntN(2) == 0 {
		q.from = began.Add(time.Duration(r.Int64N(int64(spread/time.Second))) * time.Second)
		q.to = q.from.Add(time.Duration(1+r.Int64N(int64(spread/time.Second))) * time.Second)
	}
	q.Set("from", q.from.Format(time.RFC3339))
	q.Set("to", q.to.In(time.FixedZone("", 7200)).Format(time.RFC3339))
	if r.IntN(3) == 0 {
		q.revision = h.versions[r.IntN(len(h.versions))].revision
		q.Set("revision", strconv.FormatUint(q.revision, 10))
	}
	for range r.IntN(3) {
		c := h.condition()
		if c.text != "" && q.Has("search") {
			continue
		}
		join := func(name, text string) {
			if before := q.Get(name); before != "" && text != "" {
				text = before + "," + text
			}
			if text != "" {
				q.Set(name, text)
			}
		}
		join("fieldSelector", c.field)
		join("labelSelector", c.label)
		join("search", c.text)
		q.terms = append(q.terms, c.means)
		q.records = q.records || c.records
	}
	if r.IntN(3) == 0 {
		some := modelNamespaces[:1+r.IntN(3)]
		q.Values["namespace"] = slices.Clone(some)
		q.terms = append(q.terms, func(v *version) bool { return slices.Contains(some, v.Namespace) })
	}
	return q
}

func (q *question) matches(v *version) bool {
	return !slices.ContainsFunc(q.terms, func(term func(*version) bool) bool { return !term(v) })
}

func (q *question) covers(at time.Time) bool { return !at.Before(q.from) && at.Before(q.to) }

// lastIn returns when a version was observed last in the range of a question, zero if it was not.
func (q *question) lastIn(v *version) (last time.Time) {
	if q.covers(v.at) {
		return v.at
	}
	for _, at := range v.instants() {
		if q.covers(at) {
			last = at
		}
	}
	return last
}

// events returns the events that a question is about, newest observation first.
func (h *history) events(q *question) []*version {
	var out []*version
	existing := h.existing(q.revision)
	for i := range h.versions {
		v := &h.versions[i]
		last := existing[v.Namespace+"/"+v.Name]
		if v.revision <= q.revision && !v.gone && !q.lastIn(v).IsZero() && q.matches(v) && last != nil && last.UID == v.UID && h.newestThere(q, i) {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b *version) int {
		return cmp.Or(q.lastIn(b).Compare(q.lastIn(a)), cmp.Compare(b.revision, a.revision))
	})
	return out
}

// newestThere reports whether no version that a question asks for follows one of the same event, before it was observed
// behind the range.
func (h *history) newestThere(q *question, of int) bool {
	v := &h.versions[of]
	for i := range h.versions[of+1:] {
		next := &h.versions[of+1+i]
		if next.Namespace != v.Namespace || next.Name != v.Name || next.revision > q.revision {
			continue
		}
		in := !next.gone && !q.lastIn(next).IsZero()
		if next.gone || in && q.matches(next) {
			return false
		}
		if !in && !next.at.Before(q.to) {
			return true
		}
	}
	return true
}

// seen is what was observed at one time.
type seen struct {
	of    *version // with its dimensions
	at    time.Time
	count int64
}

// observations returns what counts are made of: what each version that matches adds within the range.
func (h *history) observations(q *question) (out []seen) {
	for i := range h.versions {
		v := &h.versions[i]
		if v.gone || v.revision > q.revision || !q.matches(v) {
			continue
		}
		for _, at := range v.instants() {
			if q.covers(at) {
				out = append(out, seen{v, at, 1})
			}
		}
	}
	return out
}

// by returns random dimensions.
func (h *history) by(most int, of ...string) []string {
	h.r.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
	return of[:1+h.r.IntN(most)]
}

var modelDimensions = []string{"type", "reason", "kind", "namespace", "reporter", "cluster", "node"}

// TestQueriesModel: every answer is what the naive model says, over random events,
// updates of series, deletions, imports of what was exported before, observations out of
// order, restarts, files that are written again, and at revisions of the past.
func TestQueriesModel(t *testing.T) {
	t.Parallel()
	seeds := 6
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			c := &apitest.Clock{Now: time.Now()}
			w := apitest.Open(t, bolt.Options{Retention: 48 * time.Hour, History: 1000 * time.Hour, Now: c.Read, SegmentBytes: 8 << 10},
				func(config *api.Config) { config.Now = c.Read })
			h := &history{w: w, r: randtest.New(t), most: map[types.UID]int64{}}
			for round := range 4 {
				for range 30 {
					h.write()
				}
				if round == 2 {
					h.deleteAndRestore()
				}
				h.expire(c)
				for range 5 {
					h.checkEvents(h.question())
					h.checkHistogram(h.question())
					h.checkFacets(h.question())
					h.checkGroups(h.question())
					h.checkOverview(h.question())
					h.checkObject()
					h.checkAgreement(h.question())
				}
				if err := w.DB.Compact(t.Context(), round%2 == 0, nil); err != nil {
					t.Fatal(err)
				}
				h.checkHistogram(h.question())
				h.checkAgreement(h.question())
				w.Stop()
				if round%2 == 1 { // it is made again from the log
					if err := os.Remove(filepath.Join(w.Store.Dir, "index.db")); err != nil {
						t.Fatal(err)
					}
				}
				w.Start()
			}
			h.forget(c)
			if h.expired == 0 || h.restored == 0 {
				t.Errorf("%d events have expired, %d were restored", h.expired, h.restored)
			}
		})
	}
}

// forget has the store forget all that was superseded or deleted. Counts by dimensions stay what they were, also after
// a start.
func (h *history) forget(c *apitest.Clock) {
	h.w.T.Helper()
	h.forgotten = true
	for range 2 {
		h.w.Stop()
		h.w.Store.Retention, h.w.Store.History = 0, time.Nanosecond
		h.w.Start()
		c.Add(time.Second)
		if err := h.w.DB.Compact(h.w.T.Context(), h.r.IntN(2) == 0, nil); err != nil {
			h.w.T.Fatal(err)
		}
		if stats := h.w.DB.Stats(); stats.HistoryBytes > 0 {
			h.w.T.Errorf("%d bytes of history are left", stats.HistoryBytes)
		}
		for range 15 {
			q := h.question()
			if q.records || q.Has("revision") { // which is no longer held
				continue
			}
			h.checkHistogram(q)
			q.Del("step")
			q.Del("by")
			h.checkFacets(q)
		}
	}
}

// deleteAndRestore deletes events and imports them again, once at least, which no random writes promise.
func (h *history) deleteAndRestore() {
	h.w.T.Helper()
	export := h.export()
	for key, last := range h.existing(h.w.DB.Revision()) {
		namespace, name, _ := strings.Cut(key, "/")
		h.w.Do("DELETE", "/apis/events.k8s.io/v1/namespaces/"+namespace+"/events/"+name, "").Must(200)
		h.versions = append(h.versions, version{Event: last.Event, revision: h.w.DB.Revision(), gone: true, count: last.count})
		for h.restored == 0 { // takes a line with even chances
			h.restore(export)
		}
		return
	}
}

// expire lets time pass, and keeps which events have expired.
func (h *history) expire(c *apitest.Clock) {
	h.w.T.Helper()
	before := h.w.DB.Revision()
	c.Add(25 * time.Hour)
	if err := h.w.DB.Maintain(h.w.T.Context()); err != nil {
		h.w.T.Fatal(err)
	}
	h.follow(before, func(d store.Delivery) {
		if d.Type != store.Removed {
			h.w.T.Fatalf("%s has changed while nobody wrote", d.Object.Key)
		}
		h.gone(d)
		h.expired++
	})
}

// each gets all pages of an answer.
func (h *history) each(path string, q url.Values, page func(*apitest.Answer) (next string)) {
	h.w.T.Helper()
	q = maps.Clone(q)
	for range 1000 {
		if h.r.IntN(2) == 0 || !q.Has("limit") {
			q.Set("limit", strconv.Itoa(1+h.r.IntN(40)))
		}
		next := page(h.w.Do("GET", "/query/v1/"+path+"?"+q.Encode(), "").Must(200))
		if next == "" {
			return
		}
		q.Set("continue", next)
	}
	h.w.T.Fatal("the pages do not end")
}

func (h *history) checkEvents(q *question) {
	h.w.T.Helper()
	want := []string{}
	for _, v := range h.events(q) {
		want = append(want, v.ResourceVersion)
	}
	if h.r.IntN(2) == 0 {
		q.Set("order", "oldest")
		slices.Reverse(want)
	}
	got := []string{}
	h.each("events", q.Values, func(a *apitest.Answer) string {
		for _, item := range a.At("items").([]any) {
			got = append(got, apitest.Field(item, "metadata.resourceVersion").(string))
		}
		next, _ := a.At("continue").(string)
		return next
	})
	h.same(q, "events", got, want)
}

// same compares an answer with what is expected.
func (h *history) same(q *question, what string, got, want any) {
	h.w.T.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		h.w.T.Fatalf("%s?%s at revision %d\n got %v\nwant %v", what, q.Encode(), q.revision, got, want)
	}
}

func (h *history) checkHistogram(q *question) {
	h.w.T.Helper()
	by := h.by(3, slices.Clone(modelDimensions)...)
	if h.r.IntN(3) == 0 {
		by = nil
	}
	step := apitest.Pick(h.r, time.Minute, 7*time.Minute, time.Hour, 24*time.Hour)
	q.Set("by", strings.Join(by, ","))
	q.Set("step", step.String()[:strings.IndexAny(step.String(), "hm")+1])
	want, total := map[string]int64{}, int64(0)
	for _, o := range h.observations(q) {
		size := int64(step / time.Second)
		key := time.Unix(o.at.Unix()/size*size, 0).UTC().Format(time.RFC3339)
		for _, d := range by {
			key += "|" + o.of.dimension(d)
		}
		want[key] += o.count
		total += o.count
	}
	got := map[string]int64{}
	a := h.w.Do("GET", "/query/v1/histogram?"+q.Encode(), "").Must(200)
	for _, item := range a.At("buckets").([]any) {
		b := item.(map[string]any)
		if len(by) == 0 {
			got[b["start"].(string)] = int64(b["count"].(float64))
			continue
		}
		var sum float64
		flatten(b["counts"], b["start"].(string), func(key string, n float64) { got[key] += int64(n); sum += n })
		if sum != b["count"].(float64) {
			h.w.T.Fatalf("the counts of %v are not its count", b)
		}
	}
	h.same(q, "histogram", got, want)
	h.same(q, "total of histogram", a.At("total"), float64(total))
	h.counted(q, a, by)
}

// counted checks what an answer says of its counts.
func (h *history) counted(q *question, a *apitest.Answer, by []string) {
	h.w.T.Helper()
	want := "occurrences"
	if q.records || slices.Contains(by, "object") || slices.Contains(by, "pattern") {
		want = "events"
	}
	h.same(q, "counted", a.At("counted"), want)
	h.same(q, "partial", a.At("partial"), false)
}

// flatten calls f with each number in nested objects, and its path.
func flatten(v any, path string, f func(path string, n float64)) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			flatten(value, path+"|"+key, f)
		}
	case float64:
		f(path, v)
	}
}

func (h *history) checkFacets(q *question) {
	h.w.T.Helper()
	limit := 1 + h.r.IntN(4)
	q.Set("limit", strconv.Itoa(limit))
	by := slices.Clone(modelDimensions)
	if !h.forgotten && h.r.IntN(2) == 0 {
		by = append(by, "pattern")
		q.Set("by", strings.Join(by, ","))
	}
	a := h.w.Do("GET", "/query/v1/facets?"+q.Encode(), "").Must(200)
	for _, d := range by {
		counts, total := map[string]int64{}, int64(0)
		for _, o := range h.observations(q) {
			counts[o.of.dimension(d)] += o.count
			total += o.count
		}
		values := slices.Collect(maps.Keys(counts))
		slices.SortFunc(values, func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
		want := []string{}
		for _, value := range values[:min(limit, len(values))] {
			want = append(want, fmt.Sprint(value, "=", counts[value]))
			total -= counts[value]
		}
		got := []string{}
		for _, item := range a.At("facets." + d).([]any) {
			got = append(got, fmt.Sprint(apitest.Field(item, "value"), "=", apitest.Field(item, "count")))
		}
		h.same(q, "facet of "+d, got, want)
		h.same(q, "others of "+d, a.At("other."+d), float64(total))
	}
	h.counted(q, a, by)
}

func (h *history) checkGroups(q *question) {
	h.w.T.Helper()
	by := h.by(3, append(slices.Clone(modelDimensions), "pattern", "object", "object")...)
	if len(by) > 1 && by[0] == by[1] || len(by) > 2 && (by[0] == by[2] || by[1] == by[2]) {
		by = by[:1]
	}
	byObject := slices.Contains(by, "object")
	order := apitest.Pick(h.r, "count", "newest", "oldest")
	q.Set("by", strings.Join(by, ","))
	q.Set("order", order)
	type group struct {
		key         string
		count       int64
		first, last int64
	}
	keyOf := func(v *version) string {
		values := []string{}
		for _, d := range by {
			values = append(values, v.dimension(d))
		}
		for _, d := range []string{"namespace", "cluster"} { // by which objects without a UID are told apart
			if slices.Contains(by, d) || byObject && v.Regarding.UID == "" {
				values = append(values, v.dimension(d))
			} else {
				values = append(values, "")
			}
		}
		return strings.Join(values, "|")
	}
	all := map[string]*group{}
	for _, o := range h.observations(q) {
		key, at := keyOf(o.of), o.at.Unix()
		if all[key] == nil {
			all[key] = &group{key, 0, at, at}
		}
		g := all[key]
		g.count, g.first, g.last = g.count+o.count, min(g.first, at), max(g.last, at)
	}
	sorted := slices.SortedFunc(maps.Values(all), func(a, b *group) int {
		n := cmp.Compare(b.count, a.count)
		switch order {
		case "newest":
			n = cmp.Compare(b.last, a.last)
		case "oldest":
			n = cmp.Compare(a.first, b.first)
		}
		return cmp.Or(n, slices.Compare(strings.Split(a.key, "|"), strings.Split(b.key, "|")))
	})
	want := []string{}
	for _, g := range sorted {
		want = append(want, fmt.Sprint(g.key, " ", g.count, time.Unix(g.first, 0).UTC().Format(time.RFC3339), time.Unix(g.last, 0).UTC().Format(time.RFC3339)))
	}
	// newestOf returns the newest event of a group in a range.
	newestOf := func(key string, from, to time.Time) string {
		in := *q
		in.from, in.to, in.terms = from, to, append(slices.Clone(q.terms), func(v *version) bool { return keyOf(v) == key })
		for _, v := range h.events(&in) {
			return v.ResourceVersion
		}
		return ""
	}
	got := []string{}
	h.each("groups", q.Values, func(a *apitest.Answer) string {
		h.counted(q, a, by)
		for _, item := range a.At("groups").([]any) {
			values := []string{}
			for _, d := range by {
				if o, ok := apitest.Field(item, "by."+d).(map[string]any); ok {
					values = append(values, fmt.Sprint(o["kind"], "|", o["namespace"], "|", o["name"], "|", o["uid"]))
					continue
				}
				values = append(values, apitest.Field(item, "by."+d).(string))
			}
			for _, d := range []string{"namespace", "cluster"} {
				value, _ := apitest.Field(item, "by."+d).(string)
				values = append(values, value)
			}
			key := strings.Join(values, "|")
			got = append(got, fmt.Sprint(key, " ", apitest.Field(item, "count"), apitest.Field(item, "first"), apitest.Field(item, "last")))
			sample, _ := apitest.Field(item, "sample.metadata.resourceVersion").(string)
			if g := all[key]; g != nil {
				last := time.Unix(g.last, 0).UTC()
				h.same(q, "sample of "+key, sample, cmp.Or(newestOf(key, last, last.Add(time.Second)), newestOf(key, q.from, last.Add(time.Second))))
			}
			h.checkLink(q, item, newestOf(key, q.from, q.to))
		}
		next, _ := a.At("continue").(string)
		return next
	})
	h.same(q, "groups", got, want)
}

// checkAgreement compares the list, the facets, the histogram and the groups of one question with each other. An event
// that was deleted is counted and not listed, and one that says something else since, but was not observed again, is
// listed and not counted.
func (h *history) checkAgreement(q *question) {
	h.w.T.Helper()
	keyOf := func(reason, kind, name, uid any) string { return fmt.Sprint(reason, "|", kind, "|", name, "|", uid) }
	deleted, silent := map[string]bool{}, map[string]bool{}
	for i := range h.versions {
		v := &h.versions[i]
		key := keyOf(v.Reason, v.Regarding.Kind, v.Regarding.Name, v.Regarding.UID)
		last := h.existing(q.revision)[v.Namespace+"/"+v.Name]
		if last == nil || last.UID != v.UID || slices.ContainsFunc(h.versions[i:], func(next version) bool {
			return next.gone && next.revision <= q.revision && next.Namespace == v.Namespace && next.Name == v.Name
		}) {
			deleted[key] = true
		}
		silent[key] = silent[key] || v.add == 0
	}
	listed, counted, total := map[string]bool{}, map[string]bool{}, 0.0
	h.each("events", q.Values, func(a *apitest.Answer) string {
		for _, item := range a.At("items").([]any) {
			text := func(field string) string {
				t, _ := apitest.Field(item, field).(string)
				return t
			}
			listed[keyOf(text("reason"), text("regarding.kind"), text("regarding.name"), text("regarding.uid"))] = true
		}
		next, _ := a.At("continue").(string)
		return next
	})
	q.Set("by", "reason,object")
	h.each("groups", q.Values, func(a *apitest.Answer) string {
		for _, item := range a.At("groups").([]any) {
			o := apitest.Field(item, "by.object").(map[string]any)
			counted[keyOf(apitest.Field(item, "by.reason"), o["kind"], o["name"], o["uid"])] = true
			total += apitest.Field(item, "count").(float64)
		}
		next, _ := a.At("continue").(string)
		return next
	})
	for key := range counted {
		if !listed[key] && !deleted[key] {
			h.w.T.Fatalf("?%s at revision %d: %s is counted and not listed", q.Encode(), q.revision, key)
		}
	}
	for key := range listed {
		if !counted[key] && !silent[key] {
			h.w.T.Fatalf("?%s at revision %d: %s is listed and not counted", q.Encode(), q.revision, key)
		}
	}
	q.Set("by", "reason")
	for _, path := range []string{"facets", "histogram"} {
		h.same(q, "total of "+path, h.w.Do("GET", "/query/v1/"+path+"?"+q.Encode(), "").Must(200).At("total"), total)
	}
}

// checkOverview compares an overview with the answers to the questions that it puts together, and its next page with
// theirs.
func (h *history) checkOverview(q *question) {
	h.w.T.Helper()
	ask := func(path string, names ...string) *apitest.Answer {
		given := maps.Clone(q.Values)
		for i := 0; i < len(names); i += 2 {
			given.Set(names[i], names[i+1])
		}
		return h.w.Do("GET", "/query/v1/"+path+"?"+given.Encode(), "").Must(200)
	}
	if h.r.IntN(2) == 0 {
		q.Set("order", "oldest")
	}
	by, over, values, limit := strings.Join(h.by(3, append(slices.Clone(modelDimensions), "pattern")...), ","), strings.Join(h.by(2, "type", "reason", "pattern"), ","), strconv.Itoa(1+h.r.IntN(4)), strconv.Itoa(1+h.r.IntN(20))
	all := ask("overview", "by", by, "values", values, "over", over, "step", "7h", "limit", limit)
	same := func(a *apitest.Answer, members ...string) {
		for _, m := range append(members, "range", "revision", "partial", "gaps") {
			h.same(q, "member "+m+" of an overview", all.At(m), a.At(m))
		}
	}
	order := q.Get("order")
	events := ask("events", "limit", limit)
	same(events, "items")
	q.Del("order")
	// All counts of an overview are of the versions that are held if one of them is.
	if strings.Contains(by, "pattern") == strings.Contains(over, "pattern") {
		same(ask("facets", "by", by, "limit", values), "facets", "other", "distinct", "total", "counted", "hints")
		same(ask("histogram", "by", over, "step", "7h"), "buckets", "step", "total", "counted")
	}
	next, more := all.Object()["continue"].(string)
	if _, listed := events.Object()["continue"]; listed != more {
		h.w.T.Fatalf("more %v, want %v", more, listed)
	}
	if more {
		if order != "" {
			q.Set("order", order)
		}
		h.same(q, "the next page", ask("events", "continue", next, "limit", limit).At("items"), ask("events", "continue", events.At("continue").(string), "limit", limit).At("items"))
	}
}

// checkLink follows the link of a group to its events.
func (h *history) checkLink(q *question, group any, newest string) {
	h.w.T.Helper()
	if h.r.IntN(10) > 0 {
		return
	}
	a := h.w.Do("GET", apitest.Field(group, "events").(string)+"&limit=1", "").Must(200)
	items := a.At("items").([]any)
	got := ""
	if len(items) > 0 {
		got = apitest.Field(items[0], "metadata.resourceVersion").(string)
	}
	h.same(q, "events of the group "+fmt.Sprint(apitest.Field(group, "by")), got, newest)
}

// checkObject compares the life of an object. The time of a deletion is the time of its write,
// which is behind all observations here.
func (h *history) checkObject() {
	h.w.T.Helper()
	q := &question{Values: url.Values{}, revision: h.w.DB.Revision()}
	kind, name, uid := apitest.Pick(h.r, "Pod", "Node"), apitest.Pick(h.r, "p1", "p2"), apitest.Pick(h.r, "u1", "u2")
	about := func(v *version) bool { return v.Regarding.Kind == kind && v.Regarding.Name == name }
	if h.r.IntN(2) == 0 {
		q.Set("uid", uid)
		about = func(v *version) bool { return string(v.Regarding.UID) == uid }
	} else {
		q.Set("kind", kind)
		q.Set("name", name)
	}
	if h.r.IntN(2) == 0 {
		q.Set("namespace", "shop")
		before := about
		about = func(v *version) bool { return v.Namespace == "shop" && before(v) }
	}
	var found []version
	keys := map[string]bool{} // an event of this name is about the object
	for i := range h.versions {
		if v := &h.versions[i]; !v.gone && about(v) {
			keys[v.Namespace+"/"+v.Name] = true
		}
	}
	for i := range h.versions {
		if v := h.versions[i]; keys[v.Namespace+"/"+v.Name] && (q.Get("namespace") == "" || v.Namespace == "shop") {
			if v.gone {
				v.at = v.at.AddDate(9000, 0, 0)
			}
			found = append(found, v)
		}
	}
	slices.SortFunc(found, func(a, b version) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.revision, b.revision)) })
	want := []string{}
	for _, v := range found {
		want = append(want, fmt.Sprintf("%v %v %v", v.revision, v.count, v.gone))
	}
	if h.r.IntN(2) == 0 {
		q.Set("order", "newest")
		slices.Reverse(want)
	}
	got := []string{}
	h.each("object", q.Values, func(a *apitest.Answer) string {
		for _, item := range a.At("items").([]any) {
			deleted, _ := apitest.Field(item, "deleted").(bool)
			got = append(got, fmt.Sprintf("%v %v %v", apitest.Field(item, "revision"), apitest.Field(item, "count"), deleted))
			h.same(q, "revision of the event", apitest.Field(item, "event.metadata.resourceVersion"), apitest.Field(item, "revision"))
		}
		next, _ := a.At("continue").(string)
		return next
	})
	h.same(q, "object", got, want)
}
