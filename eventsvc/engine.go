package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/admin"
	"tidings.example/eventsvc/internal/rules"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolt"
	"tidings.example/eventsvc/internal/store/postgres"
	"tidings.example/shared/service"
)

// storeConnections are three more than the engine needs at the same time, so that statements which hang keep no others
// waiting.
const storeConnections = 8

// engine is a store, with its probes, its background work and its end.
type engine interface {
	admin.Engine
	Timeline() store.Timeline
	Ready(context.Context) error
	Room(context.Context) error
	OnTime(context.Context) error
	Run(context.Context) error
	Close() error
}

var _, _ engine = (*bolt.DB)(nil), (*postgres.DB)(nil)

// openStore opens the store, with the rules of what it keeps. A value in changed says that there are new rules.
func (s *serve) openStore(ctx context.Context, log *slog.Logger, registry *prometheus.Registry) (db engine, kept *rules.Live, changed <-chan struct{}, err error) {
	told := make(chan struct{}, 1)
	kept, err = s.rules(log, registry, func() {
		select {
		case told <- struct{}{}:
		default: // the last change is not told yet
		}
	})
	if err != nil {
		return nil, nil, nil, err
	}
	db, err = s.openEngine(ctx, kept.Current, log, registry)
	return db, kept, told, err
}

// openEngine opens the store of the settings, and of rules that may change.
func (s *serve) openEngine(ctx context.Context, kept func() *rules.Set, log *slog.Logger, registry *prometheus.Registry) (engine, error) {
	o := bolt.Options{
		Dir: filepath.Join(s.DataDir, "store"), Retention: s.Retention, Rules: kept, History: s.History,
		MaxBytes: int64(s.MaxBytes), CompressAfter: s.CompressAfter.OrZero(), Log: log, Registry: registry,
	}
	if s.StoreDSN != "" {
		db, err := postgres.Open(ctx, postgres.Options{
			Access: postgres.Access{DSN: s.StoreDSN, MaxConnections: storeConnections},
			Copy:   o, LocalReads: s.StoreMaxStaleness > 0, MaxStaleness: s.StoreMaxStaleness,
		})
		if err != nil {
			return nil, fmt.Errorf("--store-dsn: %w", err)
		}
		return db, nil
	}
	if copied, err := postgres.IsCopy(o.Dir); err != nil {
		return nil, fmt.Errorf("--data-dir %s: %w", s.DataDir, err)
	} else if copied {
		return nil, fmt.Errorf("--data-dir %s holds the copy of a database: start with --store-dsn, or name another data directory", s.DataDir)
	}
	db, err := bolt.Open(o)
	if err != nil {
		return nil, fmt.Errorf("--data-dir %s: %w", s.DataDir, err)
	}
	return db, nil
}

// databaseHealth adds the probes of the database. Where local reads go on without it, its failure is a warning.
func (s *serve) databaseHealth(health *service.Health, db *postgres.DB) {
	if s.StoreMaxStaleness > 0 {
		health.AddWarning("database", db.Connected)
	} else {
		health.Add("database", db.Connected)
	}
	health.AddWarning("database-standby", db.Standby)
	health.AddState("database-copy", db.State)
}
