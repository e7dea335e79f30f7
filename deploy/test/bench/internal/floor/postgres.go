package floor

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Transactions commits batches of new records to a database that eventsvc has
// made, over one connection, as the only replica does: this is what the
// database can do without a service. Each record is like the newest one of
// another database. The times are of whole transactions, the count of records.
func Transactions(ctx context.Context, dsn, like string, batch int, d time.Duration) (*Result, error) {
	ctx, cancel := context.WithTimeout(ctx, d+time.Minute)
	defer cancel()
	attributes, value, err := newestRecord(ctx, like)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "SET search_path = eventsvc"); err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	ops, seen := make([]int16, batch), make([]int64, batch)
	namespaces, names := make([]string, batch), make([]string, batch)
	all, values := make([][]byte, batch), make([][]byte, batch)
	for i := range batch {
		ops[i], namespaces[i], all[i], values[i] = 1, "floor", attributes, bytes.Clone(value)
	}
	r := new(Result)
	run := time.Now().UnixNano() // names of an earlier run are taken
	for begun := time.Now(); r.Elapsed < d; r.Elapsed = time.Since(begun) {
		for i := range batch {
			names[i] = fmt.Sprintf("%d-%d", run, r.Count+i)
		}
		start := time.Now()
		var first int64
		err := conn.QueryRow(ctx, "SELECT revisions[1] FROM commit_batch(1, md5($1)::uuid, $2, $3, $4, $5, $6, $7, $8)",
			fmt.Sprint(run), int64(r.Times.Count()+1), ops, namespaces, names, seen, all, values).Scan(&first)
		if err == nil && first == 0 {
			err = fmt.Errorf("%s was refused", names[0])
		}
		if err != nil {
			return nil, fmt.Errorf("commit_batch: %w", err)
		}
		r.Times.Add(time.Since(start))
		r.Count += batch
	}
	return r, nil
}

// newestRecord returns the parts of the record that a service has written last.
func newestRecord(ctx context.Context, dsn string) (attributes, value []byte, err error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, nil, fmt.Errorf("database: %w", err)
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, "SELECT attributes, value FROM eventsvc.log WHERE op = 1 ORDER BY revision DESC LIMIT 1").Scan(&attributes, &value)
	if err != nil {
		return nil, nil, fmt.Errorf("the record to write: %w", err)
	}
	return attributes, value, nil
}

// Records counts the records in a database of eventsvc's.
func Records(ctx context.Context, dsn string) (n int, err error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return 0, fmt.Errorf("database: %w", err)
	}
	defer conn.Close(ctx)
	return n, conn.QueryRow(ctx, "SELECT count(*) FROM eventsvc.log").Scan(&n)
}

// NewDatabase makes an empty database beside another one, and returns its DSN.
func NewDatabase(ctx context.Context, dsn, name string) (string, error) {
	conf, err := pgx.ParseConfig(dsn)
	if err != nil {
		return "", fmt.Errorf("database: %w", err)
	}
	conn, err := pgx.ConnectConfig(ctx, conf)
	if err != nil {
		return "", fmt.Errorf("database: %w", err)
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "CREATE DATABASE "+name)
	return fmt.Sprintf("postgres://%s@%s:%d/%s?sslmode=disable", conf.User, conf.Host, conf.Port, name), err
}
