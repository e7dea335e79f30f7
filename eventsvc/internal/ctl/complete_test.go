package ctl

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tidings.example/shared/cli"
)

// complete returns the candidates for the last word of a command line.
func complete(server, line string) string {
	var commands Commands
	var out bytes.Buffer
	words := strings.Split(strings.Replace(line, " ", " --server="+server+" ", 1), " ")
	_, _ = cli.Parse("eventsvc", "CTLTEST", "", &commands, append([]string{"__complete"}, words...), &out, io.Discard)
	return strings.Join(strings.Fields(out.String()), " ")
}

// TestComplete: fields are known, and their values are those that the server has seen.
func TestComplete(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil, map[string]string{"facets": `{` + head + `"columns":["dimension","value","count","other"],"rows":[
		["reason","BackOff","5","false"],["reason","Pulled","3","false"],["reason","two words","1","false"],["reason","","1","false"],["reason","$(id)","1","false"],
		["type","Warning","5","false"],["namespace","shop","5","false"],["namespace","mail","4","false"],["reporter","kubelet","5","false"],["kind","Pod","5","false"]]}`})
	for line, want := range map[string]string{
		"query ":                      "cluster= kind= name= namespace= node= owner= reason= regarding.namespace= reporter= type= uid=",
		"query re":                    "reason= regarding.namespace= reporter=",
		"query reason=":               "reason=BackOff reason=Pulled",
		"query type=Warning reason=B": "reason=BackOff",
		"query reason!=P":             "reason!=Pulled",
		"query uid=":                  "",
		"query -n ":                   "mail shop",
		"query -n mail,":              "mail,mail mail,shop",
		"query --namespace=s":         "--namespace=shop",
		"query --group-by=reason,o":   "--group-by=reason,object --group-by=reason,owner",
		"query --order ":              "count newest oldest",
		"query -o j":                  "json",
		"get --reason ":               "BackOff Pulled",
		"get --reason=B":              "--reason=BackOff",
		"tail -n s":                   "shop",
		"tail --regarding ":           "Pod/",
		"get --reporting-controller=": "--reporting-controller=kubelet",
	} {
		if got := complete(s.URL, line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// TestCompleteWithout: a server that is away, that has no queries or that does not answer means no values, and no
// error.
func TestCompleteWithout(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"http://127.0.0.1:1", newStub(t, nil, nil).URL, "no-url"} {
		if got := complete(server, "query reason="); got != "" {
			t.Errorf("%s: %q", server, got)
		}
		if got := complete(server, "query reas"); got != "reason=" {
			t.Errorf("%s: %q", server, got)
		}
	}
}

// TestCompleteInTime: a server that never answers is not waited for.
func TestCompleteInTime(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop }))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(stop) })
	if got := complete(silent.URL, "query reason="); got != "" {
		t.Errorf("%q", got)
	}
}
