package queries

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"time"

	"tidings.example/eventsvc/internal/query"
	"tidings.example/eventsvc/internal/store"
)

// cursor is where an answer goes on. It holds the range and the state of the first page,
// so that all pages show the same even if the range is relative to now. It gives no
// rights: each page is decided on by itself.
type cursor struct {
	Version  int      `json:"v"`
	Query    string   `json:"q"` // of its path and parameters, see [fingerprint]
	From     int64    `json:"f"` // Unix seconds
	To       int64    `json:"t"`
	Revision uint64   `json:"r"`
	Micros   int64    `json:"m,omitempty"` // of the last row's moment
	Row      uint64   `json:"n,omitempty"` // its revision
	Value    int64    `json:"o,omitempty"` // of the last group, by which it is ordered
	Key      []string `json:"k,omitempty"` // its dimensions
}

const cursorVersion = 1

// The bounds of ranges: the years 1 to 9999, in Unix seconds.
const (
	firstSecond = -62135596800
	lastSecond  = 253402300800
)

// fingerprint names a query by everything that decides which rows it has: all but how many
// are on a page, and where it begins.
func fingerprint(path string, parameters url.Values) string {
	rows := url.Values{}
	for name, values := range parameters {
		if name != "limit" && name != "continue" && name != "formulas" {
			rows[name] = values
		}
	}
	sum := sha256.Sum256([]byte(path + "?" + rows.Encode()))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// continued reads the cursor of a request, nil if it has none.
func (r *request) continued() (*cursor, error) {
	text := r.given.Get("continue")
	if text == "" {
		return nil, nil
	}
	const use = "take it from the page before, with the same other parameters"
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	c := &cursor{}
	if err != nil || json.Unmarshal(raw, c) != nil || c.Version != cursorVersion || c.Revision == 0 ||
		c.From >= c.To || c.From < firstSecond || c.To > lastSecond {
		return nil, badRequest("continue", "is none that this service has given: %s", use)
	}
	if c.Query != fingerprint(r.endpoint.name, r.given) {
		return nil, badRequest("continue", "belongs to another query: %s", use)
	}
	if c.Revision > r.Revision() {
		return nil, badRequest("continue", "belongs to another store, as revision %d is yet to come here: begin with the first page", c.Revision)
	}
	return c, nil
}

// next returns the cursor behind the page that was made.
func (r *request) next(c cursor) string { return r.cursorOf(fingerprint(r.endpoint.name, r.given), c) }

// cursorOf returns a cursor for a query with a fingerprint.
func (r *request) cursorOf(query string, c cursor) string {
	c.Version, c.Query, c.Revision = cursorVersion, query, r.shot.Revision
	c.From, c.To = r.shot.From.Unix(), r.shot.To.Unix()
	raw, _ := json.Marshal(c) // numbers and strings: no error
	return base64.RawURLEncoding.EncodeToString(raw)
}

// place returns the place of a cursor among events, zero if there is none.
func (r *request) place() store.Moment {
	if r.cursor == nil {
		return store.Moment{}
	}
	return store.Moment{Time: time.UnixMicro(r.cursor.Micros).UTC(), Revision: r.cursor.Row}
}

// group returns the place of a cursor among groups, nil if there is none.
func (r *request) group() *query.GroupPlace {
	if r.cursor == nil {
		return nil
	}
	return &query.GroupPlace{Value: r.cursor.Value, Key: r.cursor.Key}
}

// afterGroup returns the cursor behind a group.
func (r *request) afterGroup(at query.GroupPlace) string {
	return r.next(cursor{Value: at.Value, Key: at.Key})
}

// behind returns the cursor behind a place, empty if nothing is there.
func (r *request) behind(n query.Next) string {
	if !n.More {
		return ""
	}
	return r.after(n.After)
}

// after returns the cursor behind an event.
func (r *request) after(at store.Moment) string {
	return r.next(cursor{Micros: at.Time.UnixMicro(), Row: at.Revision})
}
