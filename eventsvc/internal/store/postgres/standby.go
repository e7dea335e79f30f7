package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// standbys is what the primary says of the standbys that commits wait for.
type standbys struct {
	names     string        // synchronous_standby_names; empty: commits wait for none
	connected int           // synchronous ones; all, if this role may not see which are
	waits     time.Duration // of the commit, of any replica, that waits longest
}

// required returns for how many standbys a commit waits.
func (s *standbys) required() int {
	if s.names == "" {
		return 0
	}
	if m := counted.FindStringSubmatch(s.names); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return 1
}

// counted finds the number in synchronous_standby_names, as in "ANY 2 (a, b, c)".
var counted = regexp.MustCompile(`(?i)^\s*(?:first|any)?\s*(\d+)\s*\(`)

func (s *standbys) missing() int { return max(0, s.required()-s.connected) }

// longWait is how long a commit waits for a standby before that is reported.
const longWait = 3 * time.Second

// stopped returns an error if commits wait for a standby that does not answer.
func (s *standbys) stopped() error {
	if s.missing() == 0 && s.waits < longWait {
		return nil
	}
	return fmt.Errorf("writes wait for a synchronous standby: synchronous_standby_names is %q, %d of %d are connected, a commit has waited for %s",
		s.names, min(s.connected, s.required()), s.required(), s.waits.Round(100*time.Millisecond))
}

// selectStandbys asks for the state of the standbys. A role without pg_read_all_stats does not see the states of
// standbys, but it sees that its own sessions wait for one.
const selectStandbys = `
	SELECT current_setting('synchronous_standby_names'),
		(SELECT count(*) FROM pg_stat_replication WHERE coalesce(sync_state, 'sync') IN ('sync', 'quorum')),
		(SELECT coalesce(max(extract(epoch FROM clock_timestamp() - query_start)), 0)::float8 FROM pg_stat_activity
			WHERE wait_event = 'SyncRep' AND usename = current_user AND datname = current_database())`

// lookAtStandbys is how often the state of the standbys is asked for.
const lookAtStandbys = time.Second

// look asks for the state of the standbys, and logs when they stop writes, and when they do no more.
func (t *tail) look(ctx context.Context, conn *pgx.Conn) error {
	if t.looked = time.Now(); !t.standby.Load() {
		t.standbys.Store(&standbys{})
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, t.db.o.timeout())
	defer cancel()
	now, seconds := &standbys{}, 0.0
	if err := conn.QueryRow(ctx, selectStandbys).Scan(&now.names, &now.connected, &seconds); err != nil {
		return err
	}
	now.waits = time.Duration(seconds * float64(time.Second))
	before, stopped := t.standbys.Swap(now).stopped(), now.stopped()
	switch {
	case stopped != nil && before == nil:
		t.db.o.Copy.Log.Error("writes wait for a synchronous standby", "synchronous_standby_names", now.names, "required", now.required(), "connected", now.connected, "seconds", seconds)
	case stopped == nil && before != nil:
		t.db.o.Copy.Log.Info("the synchronous standbys answer again")
	}
	return nil
}

// Standby returns an error if commits do not wait for a standby, so that a failover can lose what was acknowledged, or
// if they wait for one that does not answer, so that nothing can be written.
func (db *DB) Standby(context.Context) error {
	switch {
	case db.tail.failed() != nil:
		return nil
	case !db.tail.standby.Load():
		return errors.New("no synchronous standby is required: a failover can lose acknowledged writes")
	}
	return db.tail.standbys.Load().stopped()
}
