// Package store keeps versions of events under one rising revision.
//
// Every effective write gets a revision of its own, which is the
// resourceVersion that clients see. Old versions stay readable until history
// is trimmed, so that pages of one list show one moment and a watch resumes
// from any revision that is still held.
//
// The interface takes a stored value as bytes: package codec makes it, and columns take it apart by codec. What
// selectors may ask about is stored beside it as [event.Attributes], so that no value is decoded to find out whether it
// matches.
//
// An engine implements [Store] and has a [Timeline]; the tests of this package run on every engine. What else the
// service needs of one is in eventsvc/engine.go. [Read], [Create] and [Records] are built on Store.
//
// The packages below and beside, from the engines down:
//
//	bolt         the engine on one machine: wiring, reads, recovery, backup, check
//	postgres     the engine of replicas: the database orders writes; each replica reads its bolt copy
//	maintenance  what expires, is compacted or compressed, and when
//	commit       the order of writes, their revisions, and their way from the queue to the disk; the clock
//	usage        what the store holds, and whether there is room
//	index        where the newest version of each event is
//	seglog       the log: records, segments, their columns
//	columns      versions by column: lists, counts and texts of any question, and what is stored
//	wal          the write-ahead log: records until a segment has them
//	boltfile     bbolt files opened, made, and checked before bbolt follows them
//	../disk      what the kernel is asked: sync, room, sizes
//	storetest    what tests of the store, its engines and their parts share
//	bolttest     what tests of the engine bolt share
package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tidings.example/eventsvc/internal/event"
)

// Key names one event. Namespace and name hold no NUL byte and no slash.
type Key struct{ Namespace, Name string }

// String returns "namespace/name".
func (k Key) String() string { return k.Namespace + "/" + k.Name }

// Draft is a version that is to be stored: everything but its key and revision.
type Draft struct {
	Attributes event.Attributes
	Value      []byte
}

// Record is one stored version of an event. Its bytes are shared, and must not be
// changed. They stay valid after the store is closed.
type Record struct {
	Key
	Revision   uint64    // revision of the write that made this version
	Time       time.Time // when that write happened; retention counts from here
	Attributes event.Attributes
	Value      []byte
	Bytes      int // that it takes in the store
}

// View returns r as what a store lends.
func (r *Record) View() *View { return (*View)(r) }

// View is one stored version of an event that the store lends to a function, such as
// that of [Store.Get]. It has been verified. Its bytes may be in a mapped file: they are
// valid until the function returns, and must not be changed. A function that needs them
// later takes a Clone. The Key may be kept.
type View Record

// Clone returns the version in memory of its own.
func (v *View) Clone() Record {
	r := Record(*v)
	n := len(v.Attributes)
	buf := append(append(make([]byte, 0, n+len(v.Value)), v.Attributes...), v.Value...)
	r.Attributes, r.Value = buf[:n:n], buf[n:]
	return r
}

// Seen returns which version this is.
func (v *View) Seen() Seen {
	return Seen{Key: v.Key, Revision: v.Revision, Bytes: v.Bytes}
}

// Seen names a version of an event that was read, without its content.
type Seen struct {
	Key
	Revision uint64
	Bytes    int // that it takes in the store
}

// Query says which events a list is about.
type Query struct {
	Namespace string          // empty: all namespaces
	Name      string          // empty: all names
	Revision  uint64          // state as of this revision; 0: the newest
	After     Key             // only keys after this one; zero: from the first
	Limit     int             // at most so many events; 0: no limit but the engine's own bounds
	Selector  *event.Selector // nil: all
	Count     bool            // fill Page.Remaining, of a list without name and selector
	Behind    int64           // with Count and After: Remaining of the page that ended there
}

// Page says which part of a list was read. A caller who wants everything asks again
// with Revision and After taken from the page before: the pages of one revision show one
// moment.
type Page struct {
	Revision  uint64 // the state that the page shows
	Last      Key    // the last key of the page: the After of the next one
	More      bool   // there are keys behind Last that may match
	Remaining int64  // with Query.Count: events behind the page; 0: none, or it would take long to know
}

// Op is what a decision does to an event.
type Op uint8

// The operations of a [Decision].
const (
	Keep   Op = iota // change nothing, use no revision
	Put              // store Draft as the newest version
	Delete           // remove the event
)

// Decision is the outcome of the closure given to [Store.Update].
type Decision struct {
	Op    Op
	Draft Draft  // for Put
	By    []byte // for Delete: who asked for it, which [Timeline] tells; nothing if the service itself did
}

// Decide returns what becomes of an event, whose newest version it is given, nil if there
// is none. It is called again with a newer version if another write came between, so it
// must not have effects of its own. Its error ends the update and is returned as it is.
// [Create] is an example.
type Decide func(current *Record) (Decision, error)

// Expect says what an update is likely to find.
type Expect uint8

// The expectations of [Store.Update].
const (
	Any    Expect = iota // the event is read before decide is called
	Absent               // there is no such event: decide is first called with nil, and nothing is read
)

// Result is the outcome of a write.
type Result struct {
	// Record is the version after the write. For Delete it is the last
	// version with the revision of the deletion; for Keep the unchanged
	// version, zero if there is none.
	Record Record
	Op     Op
	// Created is set when there was no version before.
	Created bool
}

// Outcome is the result of one of several updates, or its error.
type Outcome struct {
	Result
	Err error
}

// Store is what reads, writes and watches need of an engine; the tests of this package run
// on every engine. What operators need, such as backups and checks, is the engine's
// own: see package bolt and the interface of package admin. Every method is safe for
// concurrent use. A write has reached the disk when its method returns without
// an error; after a context error it may or may not have happened.
type Store interface {
	// Get calls look with the newest version of an event, or returns ErrNotFound. look
	// must not wait for anything. Its error is returned as it is.
	Get(ctx context.Context, key Key, look func(*View) error) error
	// List calls visit with the events of one page, in the order of namespace and name,
	// byte by byte. visit must not wait for anything. The page ends behind the event for
	// which it returns false. A revision that is no longer held is an *ExpiredError, and
	// so is the newest one if it is no longer held at the end of the page. A revision that
	// is yet to come is a *FutureError. Before an error, visit may have been called.
	List(ctx context.Context, q Query, visit func(*View) bool) (Page, error)
	// Update changes one event by compare and swap. Delete is a decision. A wrong
	// expectation costs a second attempt, and does not change the outcome.
	Update(ctx context.Context, key Key, expect Expect, decide Decide) (Result, error)
	// UpdateMany changes different events, each as Update does it: expect and decide are told
	// which. Changes whose expectation holds share one commit. The errors [ErrBusy], [ErrFull],
	// [ErrUnavailable], [ErrUnwritable] and [ErrClosed] concern all of them.
	UpdateMany(ctx context.Context, keys []Key, expect func(i int) Expect, decide func(i int, current *Record) (Decision, error)) []Outcome
	// DeleteMany deletes versions that were listed, and returns how many, also with an
	// error. It returns the keys of events that have changed or are gone since, and does
	// not delete these. It takes many commits, so that others can write meanwhile. By is that of [Decision].
	DeleteMany(ctx context.Context, seen []Seen, by []byte) (n int, changed []Key, err error)
	// Watch delivers every change after a revision. A revision that is no longer held is
	// an *ExpiredError. One that was never given out is a *FutureError: the caller has it
	// from another store.
	Watch(ctx context.Context, q WatchQuery) (Watcher, error)
	// Revision returns the revision of the newest published write, never 0.
	Revision() uint64
}

// Read returns the newest version of an event, or ErrNotFound.
func Read(ctx context.Context, s Store, key Key) (record Record, err error) {
	err = s.Get(ctx, key, func(v *View) error {
		record = v.Clone()
		return nil
	})
	return record, err
}

// Create stores a new event. The error is ErrExists if there is one.
func Create(ctx context.Context, s Store, key Key, draft Draft) (Record, error) {
	result, err := s.Update(ctx, key, Absent, func(current *Record) (Decision, error) {
		if current != nil {
			return Decision{}, ErrExists
		}
		return Decision{Op: Put, Draft: draft}, nil
	})
	return result.Record, err
}

// Records returns the events of one page. If the newest state is no longer held at the end
// of the page, it reads the page again.
func Records(ctx context.Context, s Store, q Query) ([]Record, Page, error) {
	for {
		var records []Record
		page, err := s.List(ctx, q, func(v *View) bool {
			records = append(records, v.Clone())
			return true
		})
		if _, ok := errors.AsType[*ExpiredError](err); ok && q.Revision == 0 {
			continue
		}
		return records, page, err
	}
}

// WatchQuery says which changes a watch delivers.
type WatchQuery struct {
	Namespace string // empty: all namespaces
	Name      string // empty: all names
	After     uint64 // deliver changes with greater revisions; 0: from now on
	Selector  *event.Selector
}

// Matches reports whether a watch is about an event with these attributes.
func (q *WatchQuery) Matches(key Key, a event.Attributes) bool {
	return (q.Namespace == "" || q.Namespace == key.Namespace) &&
		(q.Name == "" || q.Name == key.Name) &&
		q.Selector.Matches(key.Namespace, key.Name, a)
}

// Watcher is one reader of the change log. It is used by one goroutine.
type Watcher interface {
	// Next waits for changes and returns them, oldest first and bounded in size. It
	// returns the context's error when ctx ends, after which the watcher is still usable;
	// an *ExpiredError when a change that it has not delivered is no longer held; and
	// ErrClosed when the store is closing.
	Next(ctx context.Context) (Batch, error)
	// Behind reports whether Next will read changes into memory that other watchers do not
	// share, up to about [ReplayBytes].
	Behind() bool
	// Close frees the watcher.
	Close()
}

// ReplayBytes is about what a batch of changes has that is not shared with other watchers.
const ReplayBytes = 256 << 10

// Batch is a run of changes.
type Batch struct {
	// Changes are those that the watch asked for. There may be none, if only others
	// were made.
	Changes []Delivery
	// Revision is the one up to which every change has been delivered. A watch resumes
	// after it.
	Revision uint64
}

// Delivery is a change as one watch shows it. An event that begins to match its selector
// is Added, and one that no longer matches is Removed.
type Delivery struct {
	Type EventType
	// Object is the new version or, for Removed, the last one that matched. All watchers
	// share it.
	Object *Version
	// Revision of the change. For Removed it is newer than Object.Revision.
	Revision uint64
}

// EventType is the kind of a delivery.
type EventType uint8

// The kinds of change that a watcher sees.
const (
	Added EventType = iota
	Modified
	Removed
)

// Errors that engines return, to be tested with errors.Is.
var (
	ErrNotFound = errors.New("store: no such event")
	ErrExists   = errors.New("store: event exists already")
	// ErrBusy: the queue of writes is full. Nothing was written; try again.
	ErrBusy = errors.New("store: too many writes are waiting")
	// ErrFull: the disk has too little room left, or the store takes more than its limit.
	// Nothing was written.
	ErrFull = errors.New("store: no space left for writes")
	// ErrUnwritable: a file could not be written. The store takes no more writes until the
	// process has started again. No reader sees the write before that; it may be there afterwards.
	ErrUnwritable = errors.New("store: a file could not be written")
	// ErrUnavailable: the database of the store does not answer. Nothing was written; try again.
	ErrUnavailable = errors.New("store: the database does not answer")
	// ErrInUse: another process has the files open. It comes as a [*FileError].
	ErrInUse = errors.New("store: another process has the files open")
	// ErrClosed: the store is closing or closed.
	ErrClosed = errors.New("store: closed")
)

// ExpiredError says that the revision asked for is no longer held.
type ExpiredError struct{ Revision, Oldest uint64 }

func (e *ExpiredError) Error() string {
	return fmt.Sprintf("store: revision %d is no longer held, the oldest is %d", e.Revision, e.Oldest)
}

// FutureError says that the revision asked for was not given out yet.
type FutureError struct{ Revision, Current uint64 }

func (e *FutureError) Error() string {
	return fmt.Sprintf("store: revision %d is yet to come, the newest is %d", e.Revision, e.Current)
}

// CorruptError says that a stored version failed its checksum or cannot be read. It is
// never served.
type CorruptError struct {
	Key      Key
	Revision uint64
	Reason   string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("store: version %d of %s is damaged: %s", e.Revision, e.Key, e.Reason)
}

// FileError says that a file of the store cannot be used. It was not changed.
type FileError struct {
	Path   string
	Reason string // what is wrong
	Fix    string // what to do about it
	Err    error  // the kind of error, for errors.Is; may be nil
}

func (e *FileError) Error() string {
	return fmt.Sprintf("store file %s: %s; %s", e.Path, e.Reason, e.Fix)
}

func (e *FileError) Unwrap() error { return e.Err }
