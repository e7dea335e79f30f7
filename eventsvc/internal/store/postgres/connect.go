package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// schema is where the tables and functions are.
const schema = "eventsvc"

// Access says how to reach the database. Only DSN is required.
type Access struct {
	DSN            string
	MaxConnections int           // default and at least 4
	Timeout        time.Duration // for a statement, and for connecting; default 10 s
}

// errDSN does not repeat what the DSN says.
var errDSN = errors.New("the DSN is not understood; give a URL that begins with postgres://, or key=value pairs")

// MinConnections is the least number of connections, which are needed at the same time: for commits, the tail, the head, and maintenance.
const MinConnections = 4

// pool returns a pool of connections to the primary. It does not connect.
func (a Access) pool() (*pgxpool.Pool, error) {
	c, err := pgxpool.ParseConfig(a.DSN)
	if err != nil {
		return nil, errDSN
	}
	a.Timeout = a.timeout()
	c.MaxConns = int32(max(a.MaxConnections, MinConnections))
	c.MaxConnLifetime, c.MaxConnIdleTime = 30*time.Minute, 5*time.Minute
	conn := c.ConnConfig
	// A server that hangs leaves time for the others that the DSN names.
	conn.ConnectTimeout = a.Timeout / time.Duration(1+len(conn.Fallbacks))
	conn.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite // whatever the DSN says: a standby lacks commits
	for name, value := range map[string]string{
		"application_name":              "eventsvc",
		"search_path":                   schema,
		"jit":                           "off",                                        // the row of head has no index, so all plans look costly, and compiling one takes 0.1 to 0.7 s
		"default_transaction_isolation": "read committed",                             // each statement of a commit sees what came before the lock
		"lock_timeout":                  fmt.Sprint(a.Timeout.Milliseconds() * 3 / 4), // the server tells that nothing was written before its answer counts as lost
	} {
		if _, given := conn.RuntimeParams[name]; !given || name != "lock_timeout" && name != "application_name" {
			conn.RuntimeParams[name] = value
		}
	}
	c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		ctx, cancel := context.WithTimeout(ctx, a.Timeout)
		defer cancel()
		return requireSync(ctx, conn)
	}
	return pgxpool.NewWithConfig(context.Background(), c)
}

func (a Access) timeout() time.Duration {
	if a.Timeout <= 0 {
		return 10 * time.Second
	}
	return a.Timeout
}

// requireSync makes commits of a connection wait for the disk and for synchronous standbys, unless they wait for more.
func requireSync(ctx context.Context, c *pgx.Conn) error {
	_, err := c.Exec(ctx, "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') IN ('off', 'local')")
	return err
}

// suspect reports whether an error shows that a server which was the primary is none any more. Its connections may be open still.
func suspect(err error) bool {
	return code(err) == "25006" // read_only_sql_transaction
}

// reason returns an error of the database without what pgx says of the DSN.
func reason(err error) error {
	if failed := new(pgconn.ConnectError); errors.As(err, &failed) {
		return fmt.Errorf("no connection to the database: %w", failed.Unwrap())
	}
	return err
}

// code returns the SQLSTATE of an error that the server has sent, empty for any other.
func code(err error) string {
	if answer := new(pgconn.PgError); errors.As(err, &answer) {
		return answer.Code
	}
	return ""
}
