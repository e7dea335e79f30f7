package store

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// A Snapshot is one state of a store with its history, set aside to be copied. Its user must
// close it.
type Snapshot interface {
	Revision() uint64        // of the state
	Size() int64             // how many bytes Write writes
	Write(w io.Writer) error // an archive of all files
	Close() error
}

// Report is what a check of a store has looked at and found.
type Report struct {
	Revision uint64 `json:"revision"` // the state that was checked
	Records  int64  `json:"records"`  // versions and deletions in the log
	Keys     int64  `json:"keys"`     // events that the index knows
	Live     int64  `json:"live"`     // those that exist

	Bytes     int64 `json:"bytes"`     // of all records
	LiveBytes int64 `json:"liveBytes"` // of those of events that exist

	// CompactRevision is what a restored store continues behind.
	CompactRevision uint64 `json:"compactRevision,omitempty"`

	Problems []string `json:"problems,omitempty"`
	Dropped  []string `json:"dropped,omitempty"` // before the check, because it could not be read
}

// MaxProblems bounds a report: where so much is wrong, more would not help.
const MaxProblems = 100

// Problem adds a problem.
func (r *Report) Problem(format string, args ...any) {
	if len(r.Problems) < MaxProblems {
		r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
	}
}

// DamagedError says that a check has found problems.
type DamagedError struct{ Report *Report }

func (e *DamagedError) Error() string {
	if n := len(e.Report.Problems); n > 1 {
		return fmt.Sprintf("store: %d problems, the first: %s", n, e.Report.Problems[0])
	}
	return "store: " + e.Report.Problems[0]
}

// DamageOf turns an error of opening a store that is about what is in the files, and not
// about who may open them, into what a check would have found; nil if it is none.
func DamageOf(err error) *DamagedError {
	file, version := new(FileError), new(CorruptError)
	if !errors.As(err, &version) && !errors.As(err, &file) || errors.Is(err, ErrInUse) || errors.Is(err, os.ErrPermission) {
		return nil
	}
	return &DamagedError{&Report{Problems: []string{err.Error()}}}
}
