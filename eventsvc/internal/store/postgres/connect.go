package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
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
	MaxConnections int           // default and at least 5
	Timeout        time.Duration // for a statement, and for connecting; default 10 s
}

// errDSN does not repeat what the DSN says.
var errDSN = errors.New("the DSN is not understood; give a URL that begins with postgres://, or key=value pairs")

// minConnections is the least number of connections, which are needed at the same time: for commits, their
// confirmation, the tail, the head, and maintenance.
const minConnections = 5

// pool returns a pool of connections to the primary. It does not connect.
func (a Access) pool() (*pgxpool.Pool, error) {
	c, err := pgxpool.ParseConfig(a.DSN)
	if err != nil {
		return nil, errDSN
	}
	a.Timeout = a.timeout()
	c.MaxConns = int32(max(a.MaxConnections, minConnections))
	c.MaxConnLifetime, c.MaxConnIdleTime = 30*time.Minute, 5*time.Minute
	conn := c.ConnConfig
	// A server that hangs leaves time for the others that the DSN names.
	conn.ConnectTimeout = a.Timeout / time.Duration(1+len(conn.Fallbacks))
	conn.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite // whatever the DSN says: a standby lacks commits
	if _, given := conn.RuntimeParams["application_name"]; !given {
		conn.RuntimeParams["application_name"] = "eventsvc"
	}
	conn.OnNotice = noteWarning
	c.BeforeConnect = func(_ context.Context, conn *pgx.ConnConfig) error {
		neverCancel(conn)
		return nil
	}
	var open sync.Map // sessions of the connections that are open
	c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		ctx, cancel := context.WithTimeout(ctx, a.Timeout)
		defer cancel()
		var id string
		if err := conn.QueryRow(ctx, session, schema, fmt.Sprint(a.Timeout.Milliseconds()*3/4)).Scan(&id); err != nil {
			return err
		}
		if _, taken := open.LoadOrStore(id, true); taken {
			return errShared
		}
		conn.PgConn().CustomData()[sessionID] = id
		return nil
	}
	c.BeforeClose = func(conn *pgx.Conn) { open.Delete(conn.PgConn().CustomData()[sessionID]) }
	return pgxpool.NewWithConfig(context.Background(), c)
}

func (a Access) timeout() time.Duration {
	if a.Timeout <= 0 {
		return 10 * time.Second
	}
	return a.Timeout
}

// sessionID is the key of the session of a connection in its custom data.
const sessionID = "session"

// errShared refuses a pooler that does not keep sessions: what one has set, among it that commits wait for the standby,
// would be missing in another.
var errShared = errors.New("a pooler gives one session of the database to several connections; have it pool by session (PgBouncer: pool_mode = session)")

// session sets what a session needs, and returns what no other session has. These are no start-up parameters, because a
// pooler refuses most of them. Commits wait for the disk and for synchronous standbys, unless the server has them wait
// for more. The row of head has no index, so all plans look costly, and compiling one takes 0.1 to 0.7 s. Each
// statement of a commit has to see what came before the lock. The server ends the wait for a lock before its answer
// counts as lost, so that it tells that nothing was written.
const session = `
	SELECT concat_ws(' ', pg_backend_pid(), pg_stat_get_backend_start(pg_backend_pid()),
		set_config('search_path', $1, false), set_config('lock_timeout', $2, false), set_config('jit', 'off', false),
		set_config('default_transaction_isolation', 'read committed', false),
		set_config('synchronous_commit', CASE WHEN s IN ('off', 'local') THEN 'on' ELSE s END, false))
	FROM current_setting('synchronous_commit') s`

// neverCancel has pgx close a connection without asking the server to cancel its statement. A commit that waits for a
// standby would become visible then, although a failover can lose it. Its session ends when the standby has it.
func neverCancel(conn *pgx.ConnConfig) {
	var connected *pgconn.PgConn
	dial := conn.DialFunc
	conn.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if connected == nil {
			return dial(ctx, network, addr)
		}
		return nil, cmp.Or(connected.Conn().Close(), net.ErrClosed) // else pgx waits for the server to close it
	}
	conn.AfterConnect = func(_ context.Context, c *pgconn.PgConn) error {
		connected = c
		return nil
	}
}

// end closes a connection, with what belongs to its session. A server that hangs is not waited for.
func end(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// suspect reports whether an error shows that a server which was the primary is none any more. Its connections may be
// open still.
func suspect(err error) bool {
	return code(err) == "25006" // read_only_sql_transaction
}

// code returns the SQLSTATE of an error that the server has sent, empty for any other.
func code(err error) string {
	if answer := new(pgconn.PgError); errors.As(err, &answer) {
		return answer.Code
	}
	return ""
}
