package main

import (
	"errors"

	"tidings.example/eventsvc/internal/ctl"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/shared/cli"
)

// exitCodes is the end of the help of the commands that work on a store as a whole.
const exitCodes = `

Exit codes: 0 done, 1 failed, 2 wrong settings, 3 done but something is damaged or was left out.`

// exitCodesOfWriters is exitCodes for commands that may write to the files of a store. If a service has the files open,
// it does the work: if it cannot write, it ends with 4, and the command with 1.
const exitCodesOfWriters = exitCodes + `
The code is 4 if a file of the store could not be written.`

// errNo is the answer no. Its exit code is 1.
var errNo = errors.New("no")

// errFindings reports that a check or an import has printed findings. Its exit code is 3.
var errFindings = errors.New("not everything is well")

// exitCode returns 3 for errFindings, and for an awaited event that did not come in
// time. It returns 4 if a file of the store could not be written.
func exitCode(err error) int {
	if errors.Is(err, errFindings) || errors.Is(err, ctl.ErrTimedOut) {
		return 3
	}
	if errors.Is(err, store.ErrUnwritable) {
		return 4
	}
	return cli.ExitCode(err)
}
