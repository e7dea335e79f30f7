// Package postgres reads registrations from the table "clients" of a PostgreSQL database. It never writes or migrates
// the table, which belongs to another application. A role with SELECT on the table is enough. table.go says which rows
// are registrations. While the table cannot be read, requests are answered with 503 ([client.ErrUnavailable]).
package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"tidings.example/shared/pgreason"
	"tidings.example/tokensvc/internal/client"
)

// Config says which database to read. Only DSN and Log are required.
type Config struct {
	DSN            string
	MaxConnections int           // default 4
	Timeout        time.Duration // for one look-up, with connecting; default 2 s
	Log            *slog.Logger
	Registry       prometheus.Registerer
}

// Store is a [client.Store] of the rows of the table.
type Store struct {
	c       Config
	db      *gorm.DB
	pool    *sql.DB
	queries *queries
	keys    parsedKeys
	table   atomic.Pointer[shape] // nil until the columns have been read
}

// maxStatements is how many statements gorm keeps prepared: one to read the columns, and one for each number of ids.
const maxStatements = 32

// Open returns the store. It does not connect: the first look-up does, so the server may be down at start.
func Open(c Config) (*Store, error) {
	c.MaxConnections = cmp.Or(c.MaxConnections, 4)
	c.Timeout = cmp.Or(c.Timeout, 2*time.Second)
	conf, err := pgx.ParseConfig(c.DSN)
	if err != nil {
		return nil, errors.New("the database DSN is not understood; give postgres://user:password@host:5432/database or key=value pairs") // without err, which would repeat parts of the DSN
	}
	conf.ConnectTimeout = c.Timeout
	if _, given := conf.RuntimeParams["application_name"]; !given {
		conf.RuntimeParams["application_name"] = "tokensvc"
	}
	pool := stdlib.OpenDB(*conf, stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		if !sessions(conf) {
			return nil
		}
		_, err := conn.Exec(ctx, session, fmt.Sprint(c.Timeout.Milliseconds()))
		return err
	}))
	pool.SetMaxOpenConns(c.MaxConnections)
	pool.SetMaxIdleConns(c.MaxConnections)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	pool.SetConnMaxLifetime(30 * time.Minute)
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), &gorm.Config{
		DisableAutomaticPing:   true, // the server may be down
		SkipDefaultTransaction: true,
		PrepareStmt:            conf.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement, // else the DSN forbids it
		PrepareStmtMaxSize:     maxStatements,
		Logger:                 statements(c.Log),
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open database: %w", err), pool.Close())
	}
	if c.Registry != nil {
		c.Registry.MustRegister(collectors.NewDBStatsCollector(pool, "clients"))
	}
	s := &Store{c: c, db: db, pool: pool}
	s.queries = &queries{ask: s.ask, free: c.MaxConnections}
	return s, nil
}

// sessions reports whether each connection is a session of its own. The modes of the other DSNs are for a pooler that
// gives each statement another connection: what is set in one would stay there for whoever comes next.
func sessions(conf *pgx.ConnConfig) bool {
	return conf.DefaultQueryExecMode != pgx.QueryExecModeExec && conf.DefaultQueryExecMode != pgx.QueryExecModeSimpleProtocol
}

// session sets what a session needs, unless the DSN or the role has it. These are no start-up parameters, because a
// pooler refuses them.
const session = `
	SELECT set_config('default_transaction_read_only', 'on', false),
		CASE current_setting('statement_timeout') WHEN '0' THEN set_config('statement_timeout', $1, false) END`

// statements returns the logger of gorm. At the debug level it logs each statement without its parameters. Errors are
// returned by gorm too, and logged with the answer to the request.
func statements(log *slog.Logger) logger.Interface {
	if !log.Enabled(context.Background(), slog.LevelDebug) {
		return logger.Discard
	}
	return logger.NewSlogLogger(slog.New(asDebug{log.Handler()}), logger.Config{LogLevel: logger.Info, ParameterizedQueries: true})
}

// asDebug logs every record at the debug level.
type asDebug struct{ slog.Handler }

func (h asDebug) Handle(ctx context.Context, r slog.Record) error {
	r.Level = slog.LevelDebug
	return h.Handler.Handle(ctx, r)
}

// Close closes all connections.
func (s *Store) Close() error { return s.pool.Close() }

// Ready reports whether the table can be read.
func (s *Store) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.c.Timeout)
	defer cancel()
	_, err := s.lookAtTable(ctx)
	return err
}

// readableWait is the time between two attempts to read a table that cannot be read at start.
const readableWait = 2 * time.Second

// Run logs whether the table can be read and, if it cannot at start, when it can. A mistyped DSN would otherwise look
// like a database that is down. It returns nil when ctx ends.
func (s *Store) Run(ctx context.Context) error { return logReadable(ctx, s.Ready, s.c.Log) }

func logReadable(ctx context.Context, ready func(context.Context) error, log *slog.Logger) error {
	err := ready(ctx)
	if err != nil {
		log.Warn("the clients table is not readable: token requests are answered 503 until it is; if that does not pass by itself, check --database-dsn",
			"error", err)
	}
	for ; err != nil; err = ready(ctx) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(readableWait):
		}
	}
	log.Info("the clients table is readable")
	<-ctx.Done()
	return nil
}

// Reload looks at the table again when it is read next, over new connections, for columns that have been added.
func (s *Store) Reload() {
	s.table.Store(nil)
	// PostgreSQL refuses a prepared statement whose columns have another type now. Statements end with their
	// connection: gorm's way to close them works in the background, and the next look-up would find them still there.
	s.pool.SetMaxIdleConns(0)
	s.pool.SetMaxIdleConns(s.c.MaxConnections)
}

// ByClientID implements [client.Store].
func (s *Store) ByClientID(ctx context.Context, clientID string) (client.Client, error) {
	if clientID == "" || len(clientID) > client.MaxIDLength || !client.ValidID(clientID) {
		return client.Client{}, client.ErrNotFound // PostgreSQL would refuse NUL and invalid UTF-8
	}
	ctx, cancel := context.WithTimeout(ctx, s.c.Timeout)
	defer cancel()
	rows, err := s.queries.find(ctx, clientID)
	if err != nil {
		return client.Client{}, fmt.Errorf("read table clients: %w", pgreason.Of(err))
	}
	return s.choose(rows, clientID)
}

// ask returns the rows of some ids. If an id has many rows, they could fill the limit of the query; then each id is
// queried alone.
func (s *Store) ask(ids []string) ([]row, error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.c.Timeout)
	defer cancel()
	rows, err := s.find(ctx, ids)
	if err != nil && ctx.Err() == nil {
		// An idle connection may have broken, or the table may have changed. Reading again does no harm.
		s.Reload()
		rows, err = s.find(ctx, ids)
	}
	if err != nil || len(rows) <= len(ids) || len(ids) == 1 {
		return rows, err
	}
	rows = nil
	for _, id := range ids {
		some, err := s.find(ctx, []string{id})
		if err != nil {
			return nil, err
		}
		rows = append(rows, some...)
	}
	return rows, nil
}

// find runs one query. It returns at most len(ids)+1 rows.
func (s *Store) find(ctx context.Context, ids []string) ([]row, error) {
	table := s.table.Load()
	if table == nil {
		var err error
		if table, err = s.lookAtTable(ctx); err != nil {
			return nil, err
		}
	}
	limit := len(ids) + 1
	for len(ids)&(len(ids)-1) != 0 { // pad to a power of two, so that few prepared statements are needed
		ids = append(ids, ids[0])
	}
	var rows []row
	err := s.db.WithContext(ctx).Select(table.columns).Where(table.id, ids).Limit(limit).Find(&rows).Error
	return rows, err
}

// choose returns the row whose client_id is exactly the given one, or that with the padding of a fixed-length column.
// With some collations the query finds further rows.
func (s *Store) choose(rows []row, clientID string) (client.Client, error) {
	var found []row
	for _, r := range rows {
		if r.ClientID == clientID || strings.TrimRight(r.ClientID, " ") == clientID {
			found = append(found, r)
		}
	}
	if len(found) == 0 {
		return client.Client{}, client.ErrNotFound
	}
	if len(found) > 1 {
		s.c.Log.Error("registration not usable: client_id is not unique in table clients", "client_id", clientID)
		return client.Client{}, fmt.Errorf("%w: not unique", client.ErrNotFound)
	}
	c, err := found[0].client(clientID, &s.keys)
	if err != nil {
		s.c.Log.Error("registration not usable", "row", found[0].ID, "error", err)
		return client.Client{}, fmt.Errorf("%w: %w", client.ErrNotFound, err)
	}
	return c, nil
}
