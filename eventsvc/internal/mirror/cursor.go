package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"tidings.example/eventsvc/internal/client"
)

// cursor says how far everything of the source is written. The zero value means that nothing was copied.
type cursor struct {
	version  string
	complete time.Time // the source had nothing later than version at this time; zero: unknown
	last     time.Time // when the newest of the events that are written was last written at the source; zero: unknown
}

const (
	saveEvery  = time.Second      // between saves of a cursor that moves
	saveAnyway = time.Minute      // between saves of a cursor that does not move, so that readers see the mirror running
	lastSave   = 5 * time.Second  // limit of the save when the mirror stops
	checkEvery = 30 * time.Second // between comparisons of the cursor with the source; a silent watch is noticed within twice as long
)

// checks returns the time between comparisons of the cursor with the source.
func (c *copier) checks() time.Duration { return cmp.Or(c.CheckEvery, checkEvery) }

// check asks the source from time to time for its version, and sends what it learns to marks. Once the cursor has
// reached that version, it is known to have been complete at that time. The time at which a change arrives would not
// tell that: while the mirror catches up, later changes are minutes old already.
func (c *copier) check(ctx context.Context, marks chan<- cursor) {
	for {
		before, asked := c.state.reached(), time.Now()
		version, err := c.Source.Version(ctx, c.path)
		switch {
		case err != nil: // the watch tells of failures
		case before != version && client.Newer(before, version):
			return // the versions have started over, as the next watch will find out
		default:
			select {
			case marks <- cursor{version: version, complete: asked}:
			case <-ctx.Done():
			}
		}
		if client.Sleep(ctx, c.checks()) != nil {
			return
		}
	}
}

// await sets the mark that the cursor has to reach; nil: none.
func (c *copier) await(mark *cursor) {
	c.mark = mark
	c.state.await(mark)
}

// passMark notes the time of the mark if the cursor has reached its version.
func (c *copier) passMark() {
	if c.mark != nil && !client.Newer(c.mark.version, c.cursor.version) {
		c.cursor.complete = c.mark.complete
		c.await(nil)
	}
}

// moved sets the version up to which everything is written.
func (c *copier) moved(version string) {
	c.cursor.version = version
	c.state.moved(version)
	c.passMark()
}

// errLost reports that the target has an older cursor than the one that was saved there, or none: it was restored, or
// has lost writes, and the copies that were written since then are missing as well.
var errLost = errors.New("the target has lost writes")

// save writes the cursor, unless another mirror of the same events has written a later one. If that fails, a restart
// copies the same events again, which changes nothing. The error is nil or errLost: then nothing was written.
func (c events) save(ctx context.Context) error {
	c.savedAt = time.Now()
	stored, _, revision, err := c.loadCursor(ctx)
	comparable := err == nil && !c.renew
	if comparable && c.saved.version != "" && client.Newer(c.saved.version, stored.version) {
		c.Log.WarnContext(ctx, "the target has lost writes, going back to its cursor", "namespace", c.name, "saved", c.saved.version, "found", stored.version)
		return errLost
	}
	if later := comparable && stored.version != "" && client.Newer(stored.version, c.cursor.version); err == nil && !later {
		err = c.saveCursor(ctx, c.cursor, c.drops.counts, revision)
	}
	switch {
	case client.Code(err) == http.StatusConflict: // written meanwhile: the next save looks again
		return nil
	case err != nil:
		if ctx.Err() == nil {
			c.targetFailed(fmt.Errorf("write the cursor: %w", err))
		}
		return nil
	}
	c.saved, c.renew = c.cursor, false
	c.targetFailed(nil)
	c.reportDrops(ctx, false)
	return nil
}

// untilSave returns the time until the cursor is to be saved, which is negative if it is late.
func (c *copier) untilSave() time.Duration {
	if c.cursor.version != c.saved.version {
		return saveEvery - time.Since(c.savedAt)
	}
	return saveAnyway - time.Since(c.savedAt)
}
