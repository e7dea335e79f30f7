package alerts

import (
	"net/url"
	"strings"
	"text/template"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/shared/printable"
)

// Facts are what templates can use of an event. Texts are of one line, and have no markup: < and > are ‹ and ›, a
// backtick is ', and a mention of everybody has a blank behind its @.
type Facts struct {
	Cluster, Namespace, Kind, Name string // of the object
	Owner                          string // as Deployment/web; "" unless a mirror has found it
	Node                           string
	Type, Reason, Reporter, Note   string
	Event                          string            // name of the event
	Count                          int64             // of the observations that the event reports
	Time                           string            // of the last one, RFC 3339
	Labels                         map[string]string // of the event, which a mirror copies from the object and its namespace
	Link                           string            // to the event in the console, as it was then
}

const (
	maxNote = 1024 // bytes, as Kubernetes allows
	maxText = 4096 // of an annotation
	// aroundEvent is how far the range of a link begins before the event and ends behind it.
	aroundEvent = 30 * time.Minute
)

var markup = strings.NewReplacer("<", "‹", ">", "›", "`", "'", "](", "] (", "@everyone", "@ everyone", "@here", "@ here",
	"@channel", "@ channel", "@all", "@ all")

// plain makes text of an event harmless, with at most so many bytes.
func plain(text string, most int) string {
	text = markup.Replace(printable.OneLine(cut(text, most)))
	return cut(text, most)
}

// cut returns the beginning of a text, without half a character at its end.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}

// newFacts returns the facts of an event. console is the address of the console.
func newFacts(ev *eventsv1.Event, s *event.Subject, o event.Occurrence, console string) *Facts {
	text := func(t string) string { return plain(t, event.MaxDimension) }
	d := s.Dimensions()
	f := &Facts{
		Cluster: text(d.Cluster), Namespace: text(ev.Regarding.Namespace), Kind: text(d.Kind), Name: text(ev.Regarding.Name),
		Owner: text(d.Owner), Node: text(d.Node), Type: text(d.Type), Reason: text(d.Reason), Reporter: text(d.Reporter),
		Note: plain(ev.Note, maxNote), Event: text(ev.Name), Count: o.Count, Time: o.Time.UTC().Format(time.RFC3339),
		Labels: map[string]string{}, Link: link(console, ev, o.Time),
	}
	for key, value := range ev.Labels {
		f.Labels[key] = text(value)
	}
	return f
}

// link returns the address of an event in the console: what there is about its object around that time, at its
// revision.
func link(console string, ev *eventsv1.Event, at time.Time) string {
	quote := func(text string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(cut(text, maxNote/4)) + `"`
	}
	q := url.Values{
		"q":    {"kind:" + quote(ev.Regarding.Kind) + " name:" + quote(ev.Regarding.Name)},
		"from": {at.Add(-aroundEvent).UTC().Format(time.RFC3339)}, "to": {at.Add(aroundEvent).UTC().Format(time.RFC3339)},
		"revision": {ev.ResourceVersion}, "event": {ev.Namespace + "/" + ev.Name},
	}
	return console + "#/events?" + q.Encode()
}

// field is a label or an annotation.
type field struct {
	name string
	text *template.Template
}

// newField reads a template, and tries it with an event that has all facts and one that has none.
func newField(name, text string) (f field, err error) {
	f.name = name
	if f.text, err = template.New(name).Option("missingkey=error").Parse(text); err != nil {
		return f, err
	}
	all := &Facts{"a", "a", "a", "a", "a/a", "a", "a", "a", "a", strings.Repeat("a", maxNote), "a", 1, "a", map[string]string{"a": "a"}, "a"}
	for _, facts := range []*Facts{all, {}} {
		if _, err = f.render(facts); err != nil {
			return f, err
		}
	}
	return f, nil
}

// render returns the text for an event.
func (f field) render(facts *Facts) (string, error) {
	var b strings.Builder
	if err := f.text.Execute(&b, facts); err != nil {
		return "", err
	}
	return cut(strings.ToValidUTF8(b.String(), "�"), maxText), nil
}

// render returns the fields that are not empty. One whose template fails with this event says so, and the alert is
// sent.
func render(fields []field, facts *Facts, most int) map[string]string {
	texts := map[string]string{}
	for _, f := range fields {
		text, err := f.render(facts)
		if err != nil {
			text = "(the template failed: " + plain(err.Error(), maxNote) + ")"
		}
		if text = strings.TrimSpace(text); text != "" {
			texts[f.name] = cut(text, most)
		}
	}
	return texts
}
