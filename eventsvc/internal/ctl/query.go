package ctl

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"tidings.example/eventsvc/internal/client"
	"tidings.example/eventsvc/internal/terminal"
	"tidings.example/shared/cli"
	"tidings.example/shared/printable"
)

// queryCmd asks what happened.
type queryCmd struct {
	access        `embed:""`
	Terms         []string      `arg:"" optional:"" name:"term" help:"What to search for: words, field:value, field!=value, OR, NOT and parentheses. After --, a minus before a term leaves out what fits it."`
	Namespace     []string      `env:"-" short:"n" placeholder:"NAME" help:"Namespaces, separated by commas. Default: all that you may list."`
	Selector      string        `env:"-" short:"l" placeholder:"SELECTOR" help:"Only events with these labels, such as app=web,tier!=test."`
	FieldSelector string        `env:"-" placeholder:"SELECTOR" help:"Only events with these fields, such as regarding.name!=web-0."`
	Since         time.Duration `env:"-" placeholder:"DURATION" help:"From so long before now, such as 6h or 7d. Default: an hour."`
	From          string        `env:"-" placeholder:"TIME" help:"Begin of the range: RFC 3339, a local time such as '2026-11-23 14:05', or relative to now such as -6h."`
	To            string        `env:"-" placeholder:"TIME" help:"End of the range, which is not part of it. Default: now."`
	GroupBy       []string      `env:"-" placeholder:"DIMENSION" help:"Count by type, reason, kind, namespace, reporter, cluster, owner, node, pattern (of the note) or object, with first, last and a sample."`
	Facets        bool          `env:"-" help:"Count the values of each dimension."`
	Histogram     bool          `env:"-" help:"Count over time."`
	Clusters      bool          `env:"-" help:"Which clusters are mirrored, until when each is complete, and its gaps in the range."`
	Changes       bool          `env:"-" help:"What is new, more or less than before, the most unexpected first."`
	Deleted       bool          `env:"-" help:"Which events somebody has deleted, when and who; not what has expired. With -o json, for eventsvc import."`
	Object        string        `env:"-" placeholder:"KIND/NAME" help:"The life of one object: every version of every event about it, deleted ones too; without a / it is a uid."`
	By            []string      `env:"-" placeholder:"DIMENSION" help:"With --histogram (default type) or --facets (default all): the dimensions."`
	Step          time.Duration `env:"-" placeholder:"DURATION" help:"With --histogram: the length of a bucket. Default: the server chooses."`
	At            string        `env:"-" placeholder:"TIME" help:"With --changes: the end of the window. Default: now."`
	Window        time.Duration `env:"-" placeholder:"DURATION" help:"With --changes: its length. Default: the server's, 15m."`
	Order         string        `env:"-" placeholder:"ORDER" help:"newest, oldest or, with --group-by, count. Default: newest; count with --group-by, oldest with --object."`
	Limit         *int          `env:"-" placeholder:"N" help:"At most so many rows, or values of a dimension; 0: all. Default: 100, with --changes 20, with --facets 10, with --deleted all."`
	Output        string        `env:"-" short:"o" default:"table" enum:"table,wide,json,csv" help:"table, wide (more columns, nothing is cut), json (as the server answers) or csv."`

	EscapeFormulas bool `env:"-" help:"With -o csv: put ' before texts that a spreadsheet takes for formulas."`
}

// Help is shown below the settings.
func (*queryCmd) Help() string {
	return `Examples:

    eventsvc query --since 6h --namespace shop reason=BackOff "back-off"
    eventsvc query --since 7d --histogram type=Warning
    eventsvc query --since 24h --group-by reason,object cluster=production
    eventsvc query --since 24h --facets -n shop
    eventsvc query --changes --at '2026-11-23 14:05' --window 30m
    eventsvc query --since 7d --object Deployment/web -n shop
    eventsvc query --clusters --since 24h
    eventsvc query --deleted --since 2h -n shop

Words and phrases ("in quotation marks") are searched in the note, the reason, the name of the object and the node. field:value and
field=value ask for a field: type, reason, kind, name, namespace (ns), reporter, cluster, owner, node, uid, note, pattern,
or one of kubectl's field selectors; label:key=value asks for a label. A value may be several, field:a,b, and * stands for any text: name:web-*. All terms
have to match; -term and NOT leave out, OR and parentheses choose: 'type:warning (reason:Failed* OR "no space") -ns:dev'.

A time is when something was observed. Counts are of occurrences: a series counts as often as it says. The newest
events come first. Standard error says if the answer is not complete, and when the mirror of a cluster was away.

Exit codes: 0 also if nothing was found, 1 failure, 2 usage.`
}

// mode is a way to ask: the last part of its path, and how its answer is shown.
type mode struct {
	flag, path string
	pages      bool   // in which the answer comes
	list       string // the member of its JSON that has the rows
	columns    func(*queryCmd, *output, []row) []column
	nothing    string // is said of no rows; "": that there are no events
}

// modes are all of them; the first is the default.
var modes = []mode{
	{"", "events", true, "items", (*queryCmd).events, ""},
	{"group-by", "groups", true, "groups", (*queryCmd).groups, ""},
	{"facets", "facets", false, "", (*queryCmd).facets, ""},
	{"histogram", "histogram", false, "buckets", (*queryCmd).histogram, ""},
	{"changes", "changes", false, "changes", (*queryCmd).changes, ""},
	{"object", "object", true, "items", (*queryCmd).object, "Nothing is known about this object."},
	{"clusters", "clusters", false, "items", (*queryCmd).clusters, "No mirror has told how far a cluster is copied."},
	{"deleted", "deleted", true, "items", (*queryCmd).deleted, "Nobody has deleted events in this range."},
}

// mode returns the way to ask that the flags choose, or an error if they choose several.
func (q *queryCmd) mode() (mode, error) {
	chosen := modes[0]
	for i, given := range []bool{false, len(q.GroupBy) > 0, q.Facets, q.Histogram, q.Changes, q.Object != "" && !q.Changes, q.Clusters, q.Deleted} {
		if given && chosen.flag != "" {
			return chosen, cli.Usagef("--%s and --%s exclude each other: set one of them", chosen.flag, modes[i].flag)
		}
		if given {
			chosen = modes[i]
		}
	}
	return chosen, nil
}

// Validate refuses a term with a minus that is read as -n and a namespace, such as -notready.
func (*queryCmd) Validate(parsed *cli.Context) error {
	for _, arg := range parsed.Args {
		if arg == "--" {
			break
		}
		if name, ok := strings.CutPrefix(arg, "-n"); ok && name != "" {
			return cli.Usagef("%s is -n %s: write that, or write -- before a term that begins with -", arg, strings.TrimPrefix(name, "="))
		}
	}
	return nil
}

// check returns an error for settings that contradict each other or have no effect.
func (q *queryCmd) check(m mode) error {
	if err := q.checkTimes(m); err != nil {
		return err
	}
	if err := q.checkAnswer(m); err != nil {
		return err
	}
	if m.path == "clusters" && len(q.Terms)+len(q.Selector)+len(q.FieldSelector) > 0 {
		return cli.Usagef("--clusters tells of all clusters that you may see: leave out terms and selectors")
	}
	if m.path == "deleted" && len(q.Terms) > 0 {
		return cli.Usagef("--deleted takes no terms: set --namespace, --selector or --field-selector")
	}
	if (q.Object != "" || m.path == "changes") && len(q.Selector)+len(q.FieldSelector) > 0 || q.Object != "" && len(q.Terms) > 0 {
		return cli.Usagef("--object and --changes look at everything that happened: leave out terms and selectors; --namespace says where to look")
	}
	if _, err := labels.Parse(q.Selector); err != nil {
		return cli.Usagef("--selector: %w", err)
	}
	return nil
}

// checkAnswer checks the settings about the form of the answer.
func (q *queryCmd) checkAnswer(m mode) error {
	switch {
	case m.path != "histogram" && m.path != "facets" && len(q.By) > 0:
		return cli.Usagef("--by has no effect without --histogram or --facets; to count, set --group-by")
	case (!m.pages || m.path == "deleted") && q.Order != "":
		return cli.Usagef("--order has no effect with --%s", m.flag)
	case m.path == "histogram" && q.Limit != nil:
		return cli.Usagef("--limit has no effect with --histogram: set --step for fewer buckets")
	case m.path == "clusters" && q.Limit != nil:
		return cli.Usagef("--limit has no effect with --clusters: all are shown")
	case q.Limit != nil && *q.Limit < 0:
		return cli.Usagef("--limit %d is negative: set a number of rows, or 0 for all", *q.Limit)
	case q.EscapeFormulas && q.Output != "csv":
		return cli.Usagef("--escape-formulas has no effect without --output csv: set both or none")
	}
	return nil
}

// checkTimes checks the settings about times.
func (q *queryCmd) checkTimes(m mode) error {
	ranged, windowed := q.Since > 0 || q.From != "" || q.To != "", q.At != "" || q.Window > 0
	switch {
	case min(q.Since, q.Step, q.Window) < 0:
		return cli.Usagef("--since %s, --step %s and --window %s must not be negative", q.Since, q.Step, q.Window)
	case q.Since > 0 && q.From != "":
		return cli.Usagef("--since and --from exclude each other: set one of them")
	case m.path == "changes" && ranged:
		return cli.Usagef("--since, --from and --to have no effect with --changes: set --at and --window")
	case m.path != "changes" && windowed:
		return cli.Usagef("--at and --window have no effect without --changes: set --since, or --from and --to")
	case m.path != "histogram" && q.Step > 0:
		return cli.Usagef("--step has no effect without --histogram: set both or none")
	}
	return nil
}

// localTime is the form of a time as tables show it.
var localTime = regexp.MustCompile(`^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?$`)

// instant returns a time as the API reads it.
func instant(text string) (string, error) {
	if !localTime.MatchString(text) {
		return text, nil
	}
	layout := time.DateTime[:len(text)]
	at, err := time.ParseInLocation(layout, strings.Replace(text, "T", " ", 1), time.Local)
	return at.UTC().Format(time.RFC3339), err
}

// parameters returns the parameters of the request.
func (q *queryCmd) parameters(m mode) (url.Values, error) {
	p := url.Values{"namespace": q.Namespace}
	if err := setRange(p, q.Since, map[string]string{"from": q.From, "to": q.To, "at": q.At}); err != nil {
		return nil, err
	}
	if q.Step > 0 {
		p.Set("step", seconds(q.Step))
	}
	if q.Window > 0 {
		p.Set("window", seconds(q.Window))
	}
	p.Set("labelSelector", q.Selector)
	p.Set("fieldSelector", q.FieldSelector)
	p.Set("order", q.Order)
	by := q.By
	switch m.path {
	case "groups":
		by = q.GroupBy
	case "histogram":
		by = q.dimensions()
	}
	p.Set("by", strings.Join(by, ","))
	if kind, name, ok := strings.Cut(q.Object, "/"); ok {
		p.Set("kind", kind)
		p.Set("name", name)
	} else {
		p.Set("uid", q.Object)
	}
	text, err := searchOf(q.Terms)
	if err != nil {
		return nil, err
	}
	p.Set("search", text)
	for name, values := range p {
		if len(values) == 0 || values[0] == "" {
			p.Del(name)
		}
	}
	return p, nil
}

// setRange sets times as parameters, of which --since stands for from.
func setRange(p url.Values, since time.Duration, times map[string]string) error {
	for name, text := range times {
		at, err := instant(text)
		if err != nil {
			return cli.Usagef("--%s %q is no time: %w", name, text, err)
		}
		if at != "" {
			p.Set(name, at)
		}
	}
	if since > 0 {
		p.Set("from", "-"+seconds(since))
	}
	return nil
}

// seconds returns a duration as the API reads it.
func seconds(d time.Duration) string { return fmt.Sprintf("%.0fs", d.Seconds()) }

// output is where an answer is shown.
type output struct {
	io.Writer
	err    io.Writer // messages
	form   string    // table, wide, json or csv
	width  int       // of the terminal; 0: nothing is cut
	colour bool
	plain  bool // the output is no terminal
	safe   bool // formulas are escaped
}

// Run asks and shows the answer.
func (q *queryCmd) Run(ctx context.Context, std IO) error {
	m, err := q.mode()
	if err != nil {
		return err
	}
	if err := q.check(m); err != nil {
		return err
	}
	p, err := q.parameters(m)
	if err != nil {
		return err
	}
	c, _, err := q.open()
	if err != nil {
		return err
	}
	if q.Output != "json" {
		m.list = tableRows
	}
	a, err := q.ask(ctx, c, m, p, terminal.NewProgress(std.Err))
	if err != nil {
		return at(c, err)
	}
	for _, line := range a.notices(p.Has("namespace")) {
		fmt.Fprintln(std.Err, "eventsvc: "+printable.OneLine(line))
	}
	if q.From == "" && q.At == "" && !q.Deleted && a.count() == 0 && a.Total == 0 {
		sayNewest(ctx, c, std.Err, p, a)
	}
	if q.Deleted {
		fmt.Fprintf(std.Err, "eventsvc: %d events were deleted and are gone\n", a.count())
	}
	if q.Output == "json" {
		return writeAnswer(std.Out, a)
	}
	return q.output(std).show(q, m, a)
}

func (q *queryCmd) output(std IO) *output {
	out := &output{Writer: std.Out, err: std.Err, form: q.Output, safe: q.EscapeFormulas, width: terminal.Width(std.Out), colour: terminal.Colourful(std.Out)}
	out.plain = out.width == 0
	if q.Output == "wide" {
		out.width = 0
	}
	return out
}

// limit returns how many rows are wanted; 0: all.
func (q *queryCmd) limit() int {
	switch {
	case q.Limit != nil:
		return *q.Limit
	case q.Deleted:
		return 0
	}
	return defaultLimit
}

const (
	defaultLimit = 100  // of rows
	maxValues    = 1000 // of a dimension that a server answers
	maxChanges   = 100  // rows of changes that a server answers
)

// ask sends the request and, for as long as there are more pages and rows are wanted, those for the next pages.
func (q *queryCmd) ask(ctx context.Context, c *client.Client, m mode, p url.Values, bar *terminal.Progress) (*answer, error) {
	defer bar.Clear()
	var all *answer
	for {
		if n := q.pageOf(all, m); n > 0 {
			p.Set("limit", strconv.Itoa(n))
		}
		page, err := fetch(ctx, c, m.path, m.list, p)
		if err != nil {
			return nil, err
		}
		if all = all.with(page); !m.pages || all.Continue == "" || q.limit() > 0 && all.count() >= q.limit() {
			return all, nil
		}
		bar.Show("%d rows read", all.count())
		p.Set("continue", all.Continue)
	}
}

// pageOf returns how many rows the next page may have, or 0 if the server decides.
func (q *queryCmd) pageOf(all *answer, m mode) int {
	most := client.PageSize
	switch {
	case !m.pages && q.Limit == nil:
		return 0
	case m.path == "changes":
		most = maxChanges
	case !m.pages:
		most = maxValues
	}
	if q.limit() == 0 {
		return most
	}
	return min(most, q.limit()-all.count())
}

// sayNewest says when the newest event was seen, if it lies outside the range of an answer that has none.
func sayNewest(ctx context.Context, c *client.Client, w io.Writer, asked url.Values, got *answer) {
	p := url.Values{"limit": {"1"}, "from": {got.HistoryFrom.UTC().Format(time.RFC3339)}, "to": {latest}}
	if asked.Has("namespace") {
		p["namespace"] = asked["namespace"]
	}
	a, err := fetch(ctx, c, "events", tableRows, p)
	if err != nil { // it was only a hint
		return
	}
	rows, err := a.table()
	if err != nil || len(rows) == 0 {
		return
	}
	at, err := time.Parse(time.RFC3339, rows[0].get("observed"))
	if err == nil && (at.Before(got.Range.From) || at.After(got.Range.To)) {
		at = at.Local()
		fmt.Fprintf(w, "eventsvc: no events in this range; the newest was seen at %s: look there with --from '%s'\n",
			at.Format(time.DateTime), at.Add(-time.Hour).Format("2006-01-02 15:04"))
	}
}

// fetch asks one question. List is the member of the answer that has the rows; with [tableRows] the answer is a table.
// The error says so if the server cannot be asked: kube-apiserver has no such path, or has no rule for it.
func fetch(ctx context.Context, c *client.Client, path, list string, p url.Values) (*answer, error) {
	again := attempts(ctx)
	header := http.Header{}
	if list == tableRows {
		header.Set("Accept", mediaTable)
	}
	for {
		a := &answer{list: list}
		err := c.Do(ctx, client.Request{Path: "/query/v1/" + path, Query: p, Header: header}, a)
		if err == nil {
			return a, nil
		}
		if unserved(err) {
			return nil, &unservedError{server: c.Server()}
		}
		if err = again(err); err != nil {
			return nil, err
		}
	}
}

// unservedError means that a server cannot be asked what happened.
type unservedError struct{ server string }

// Error says what to do instead.
func (e *unservedError) Error() string {
	return e.server + " does not answer queries (/query/v1): it is no eventsvc, such as a Kubernetes API server; " +
		"`eventsvc get` without terms and times lists what it has"
}

// unserved reports whether a refusal means that the server has no queries. kube-apiserver refuses callers the path
// (403) before it looks whether there is something.
func unserved(err error) bool {
	switch client.Code(err) {
	case 404:
		return true
	case 403:
		return strings.Contains(err.Error(), "cannot get path")
	}
	return false
}

// writeAnswer writes the answer as the server gave it, with the rows of all pages.
func writeAnswer(out io.Writer, a *answer) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(a.Whole)
	if err == nil {
		_, err = out.Write(printable.JSON(text.Bytes()))
	}
	return err
}
