package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/shared/cli"
)

// storeCommands work on the store as a whole.
type storeCommands struct {
	Backup  backup  `cmd:"" help:"Write a backup of all events and their history, while the service runs or not."`
	Restore restore `cmd:"" help:"Make a data directory out of a backup."`
	Check   check   `cmd:"" help:"Read everything that is stored and say what is damaged."`
	Compact compact `cmd:"" help:"Bring disk space back now, which the service does by itself in time."`
	Export  export  `cmd:"" help:"Write events as JSON, one a line, all of them or what has changed since."`
	Import  importC `cmd:"" help:"Store events of an export as they were."`
}

// exitCodes is how the help of each of these commands ends.
const exitCodes = `

Exit codes: 0 done, 1 failed, 2 wrong settings, 3 done but something is damaged or was left out.`

// errFindings is what a check or an import has to tell, in the exit code.
var errFindings = errors.New("not everything is well")

// exitCode is 3 for findings, which are printed already, and for an event that
// was waited for in vain.
func exitCode(err error) int {
	if errors.Is(err, errFindings) || errors.Is(err, errTimedOut) {
		return 3
	}
	return cli.ExitCode(err)
}

// place is where the store is.
type place struct {
	DataDir     string `default:"var/eventsvc" placeholder:"DIR" help:"The data directory."`
	ListenAdmin string `default:"127.0.0.1:8081" placeholder:"HOST:PORT" help:"The admin listener of the service, which is asked while it has the files open."`
	JSON        bool   `name:"json" help:"Print the result as JSON."`
}

// open returns the store: through the service that has it open, or else of the
// files. Who has the lock of the files decides, so that it is always the one or
// the other.
func (p *place) open(o bolt.Options, bytes *codec.Codec) (s admin.Store, closeStore func() error, err error) {
	o.Dir, o.MaxBytes = filepath.Join(p.DataDir, "store"), -1
	db, err := bolt.Open(o)
	if errors.Is(err, store.ErrInUse) {
		remote, err := admin.NewRemote(p.DataDir, p.ListenAdmin)
		return remote, func() error { return nil }, err
	}
	if err != nil {
		return nil, nil, fmt.Errorf("--data-dir %s: %w", p.DataDir, err)
	}
	return admin.Local{DB: db, Codec: bytes}, db.Close, nil
}

// exists is an error unless there is a store: opening would make one.
func (p *place) exists() error {
	there, err := bolt.Holds(filepath.Join(p.DataDir, "store"))
	if err == nil && !there {
		return cli.Usagef("--data-dir %s holds no events: name the data directory of the service", p.DataDir)
	}
	if err != nil {
		return fmt.Errorf("--data-dir %s: %w; run this as the user of the service", p.DataDir, err)
	}
	return nil
}

// print prints the result, as text or as JSON.
func (p *place) print(out io.Writer, result any, text string) error {
	if !p.JSON {
		_, err := fmt.Fprintln(out, text)
		return err
	}
	return json.NewEncoder(out).Encode(result)
}

// progress returns a line on the terminal that tells how far the work is, and
// what takes it away. Where there is no terminal there is nothing.
func (s stdio) progress(what string) (bolt.Progress, func()) {
	bar := newProgress(s.err)
	if bar.width == 0 {
		return nil, func() {}
	}
	tell := func(done, total int64) { bar.show("%s: %3d %%", what, 100*done/max(total, done, 1)) }
	return tell, bar.clear
}

// mebibytes prints a number of bytes for people.
func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// newFile is a file that appears under its name only when it is whole.
type newFile struct {
	*os.File
	path string
}

// partial is behind the name of a file that is not whole. What is left of a
// process that was killed is overwritten by the next.
const partial = ".partial"

func createNew(path string) (*newFile, error) {
	if err := absent(path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path+partial, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		err = fmt.Errorf("another process is writing %s: wait for it, or choose another file", f.Name())
	} else {
		err = f.Truncate(0)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &newFile{f, path}, nil
}

func absent(path string) error {
	_, err := os.Lstat(path)
	if err == nil {
		return fmt.Errorf("%s exists already: remove it, or choose another file", path)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// finish gives the file its name, or removes it if the work has failed.
func (f *newFile) finish(failed error) error {
	if failed == nil {
		failed = f.Sync()
	}
	if failed == nil {
		failed = absent(f.path)
	}
	if failed != nil {
		return errors.Join(failed, os.Remove(f.Name()), f.Close())
	}
	err := errors.Join(os.Rename(f.Name(), f.path), f.Close())
	dir, openErr := os.Open(filepath.Dir(f.path))
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	return errors.Join(err, dir.Sync(), dir.Close())
}

// write has work write a file that is not there yet, or with "-" the output.
func write(path string, stdout io.Writer, work func(io.Writer) error) error {
	if path == "-" {
		return work(stdout)
	}
	f, err := createNew(path)
	if err != nil {
		return err
	}
	return f.finish(work(f))
}
