package apitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// BulkPath takes many events in one request.
const BulkPath = "/bulk/v1/events"

// Result is what a bulk request answers about a line.
type Result struct {
	Index           int
	Code            int
	Name            string
	ResourceVersion string
	Replaced        bool
	Reason          string
}

// Bulk sends lines in one request.
func (w *World) Bulk(token, query string, lines ...string) *Answer {
	w.T.Helper()
	return w.As(token, "POST", BulkPath+query, strings.Join(lines, "\n")+"\n", "Content-Type", "application/x-ndjson")
}

// Results decodes the answer to a bulk request, which must have as many lines.
func (a *Answer) Results(n int) (all []Result) {
	a.T.Helper()
	a.Must(200)
	for dec := json.NewDecoder(bytes.NewReader(a.Body)); dec.More(); {
		var r Result
		if err := dec.Decode(&r); err != nil {
			a.T.Fatalf("%v: %s", err, a.Body)
		}
		if r.Index != len(all) || (r.Code < 300) != (r.Reason == "") || (r.Code < 300) != (r.ResourceVersion != "") {
			a.T.Errorf("line %d of the answer is %+v", len(all), r)
		}
		all = append(all, r)
	}
	if len(all) != n || a.Header.Get("Content-Type") != "application/x-ndjson" {
		a.T.Fatalf("%d lines of %s, want %d", len(all), a.Header.Get("Content-Type"), n)
	}
	return all
}

// CoreEvent is an event of core/v1 in a namespace. Metadata has more members.
func CoreEvent(namespace, name string, metadata ...string) string {
	more := strings.Join(append([]string{""}, metadata...), ",")
	return fmt.Sprintf(`{"metadata":{"namespace":%q,"name":%q%s},"involvedObject":{"kind":"Pod","namespace":%q,"name":"p"},"reason":"R","message":"m","type":"Normal"}`,
		namespace, name, more, namespace)
}

// CopyEvent is the copy of an event of a cluster in a version.
func CopyEvent(namespace, name, uid, version string) string {
	return CoreEvent(namespace, name, `"labels":{"tidings.example/cluster":"east"}`,
		fmt.Sprintf(`"annotations":{"mirror.tidings.example/uid":%q,"mirror.tidings.example/resource-version":%q}`, uid, version))
}
