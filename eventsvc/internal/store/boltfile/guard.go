package boltfile

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"go.etcd.io/bbolt"
)

// View runs f in a read transaction of db, guarded by [Guard].
func View(db *bbolt.DB, f func(*bbolt.Tx) error) error {
	return Guard(func() error { return db.View(f) })
}

// Update runs f in a write transaction of db, guarded by [Guard], and commits it. After a panic it only forgets the
// transaction. bbolt's own Update would scan all pages then, in a goroutine that nobody can guard, and keep its lock if
// that panics. A commit that the disk refuses still scans, and pages that a panic in a commit had taken are free again
// when the file is next opened.
func Update(db *bbolt.DB, f func(*bbolt.Tx) error) error {
	return Guard(func() error {
		tx, err := db.Begin(true)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // after a commit there is nothing to roll back
		if err := f(tx); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// Guard runs f, which reads bbolt's mapped pages, and turns two panics into errors:
// one that bbolt raises on a damaged page, and a fault on a mapped page that the disk
// cannot read. Damage then costs one request and not the process. Every other panic
// is a bug, in f or in what it calls, and is passed on: restoring a backup would not
// mend it.
func Guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if !isFault(r) && !raisedByBolt() {
			panic(r) // the stack is still there: whoever logs this panic also sees where it began
		}
		err = fmt.Errorf("damaged page: %v", r)
	}()
	return f()
}

// isFault reports a panic over memory that is mapped and cannot be read (see
// [debug.SetPanicOnFault]), unlike that over a nil pointer, which has no address.
func isFault(r any) bool {
	fault, ok := r.(interface {
		runtime.Error
		Addr() uintptr
	})
	return ok && fault != nil
}

// raisedByBolt reports whether the innermost function of the panic that is being
// recovered, apart from those of the runtime, is one of bbolt.
func raisedByBolt() bool {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	panicking := false
	for {
		frame, more := frames.Next()
		switch {
		case frame.Function == "runtime.gopanic":
			panicking = true
		case panicking && !strings.HasPrefix(frame.Function, "runtime."):
			return strings.HasPrefix(frame.Function, boltPackage)
		}
		if !more {
			return false
		}
	}
}

// boltPackage begins the names of the functions of bbolt and of its parts.
const boltPackage = "go.etcd.io/bbolt"
