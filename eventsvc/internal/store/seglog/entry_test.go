package seglog

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tidings.example/eventsvc/internal/event"
)

const testRevision = 5<<32 + 70

func testEntry() Entry {
	return Entry{
		Revision: testRevision, Kind: Modified, Previous: 12, Time: time.Unix(1, 0), Key: []byte("ns/name"), NamespaceLen: 2,
		Attributes: event.NewAttributes([event.NumFields]string{event.Reason: "Pulled"}, map[string]string{"app": "web"}),
		Value:      []byte(strings.Repeat("value ", 90)),
	}
}

// R13, R18: a record is read as it was written. Whichever bit of it is
// flipped, and under any other revision, it is found damaged.
func TestRecords(t *testing.T) {
	t.Parallel()
	want := testEntry()
	for name, record := range map[string][]byte{"whole": AppendEntry(nil, &want)} {
		got, err := parseEntry(testRevision, record)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Entry{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if got.Size() != int64(len(record)) {
			t.Errorf("%s: the record has %d bytes, said are %d", name, len(record), got.Size())
		}
		for at := range 8 * len(record) {
			spoiled := slices.Clone(record)
			spoiled[at/8] ^= 1 << (at % 8)
			if _, err := parseEntry(testRevision, spoiled); err == nil {
				t.Errorf("%s: bit %d of byte %d flipped is not found", name, at%8, at/8)
			}
		}
		for bit := range 64 {
			if _, err := parseEntry(testRevision^1<<bit, record); err == nil {
				t.Errorf("%s: it is taken for the record of another revision", name)
			}
		}
		for n := range record {
			if _, err := parseEntry(testRevision, record[:n]); err == nil {
				t.Errorf("%s: %d bytes of it are taken for a record", name, n)
			}
		}
	}
}
