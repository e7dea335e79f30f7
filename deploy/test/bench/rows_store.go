package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"tidings.example/deploy/test/bench/internal/floor"
	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/target"
	"tidings.example/deploy/test/bench/internal/workload"
)

// storeStage has the rows of eventsvc with PostgreSQL as its store. The database runs on the same cores and the same
// disk, and every commit of it is synced.
func storeStage() stage {
	var bare string // a database without a service
	beside := func(conns int) func(*bench) (*result, error) { return besideTransactions(conns, &bare) }
	return stage{
		name: "events in PostgreSQL",
		open: func(b *bench) error {
			err := b.startPostgres()
			if err != nil {
				return err
			}
			if bare, err = floor.NewDatabase(b.ctx, b.database.DSN, "bare"); err != nil {
				return err
			}
			if err := errors.Join(target.Migrate(b.ctx, b.bin, b.database.DSN), target.Migrate(b.ctx, b.bin, bare), b.start(b.onPostgres())); err != nil {
				return err
			}
			return b.up.Fill(b.ctx, tenThousand, 0, 10_000)
		},
		rows: []row{
			{name: "postgres/create/1", grows: true, goal: aloneShare(.6, "the database"), run: beside(1)},
			{name: "postgres/create/64", grows: true, goal: both(atLeast(8_000), aloneShare(.6, "the database")), run: beside(64)},
			{name: "postgres/create/256", grows: true, goal: aloneShare(.6, "the database"), run: beside(256)},
			{name: "postgres/patch/merge", grows: true, run: patches(workload.MergePatch)},
			{name: "postgres/get/64", run: gets},
			{name: "postgres/list/10000/json", run: lists(tenThousand, 10_000, target.JSONType, "")},
			{name: "postgres/watch/1", goal: p50Within(5 * time.Millisecond), run: watches(1, watchInterval)},
			{name: "postgres/watch/1000", run: watches(1000, watchInterval)},
			{name: "postgres/lag", grows: true, goal: p99Within(100 * time.Millisecond), run: lag},
			{name: "postgres/catch-up", goal: atLeast(30_000), run: catchUp},
			{name: "postgres/start", run: restarts(false)},
			{name: "postgres/memory", run: restingMemory},
		},
	}
}

// besideTransactions is a row of creates. After them it measures what the database does alone: transactions with as
// many records as those of the creates had on average.
func besideTransactions(conns int, bare *string) func(*bench) (*result, error) {
	return func(b *bench) (*result, error) {
		transactionsBefore, writesBefore, err := b.up.Transactions(b.ctx)
		if err != nil {
			return nil, err
		}
		r, err := creates(conns)(b)
		if err != nil {
			return r, err
		}
		transactions, writes, err := b.up.Transactions(b.ctx)
		if err != nil {
			return r, err
		}
		batch := max(int(math.Round((writes-writesBefore)/(transactions-transactionsBefore))), 1)
		alone, err := floor.Transactions(b.ctx, *bare, b.database.DSN, batch, b.duration)
		if err != nil {
			return r, err
		}
		r.alone = alone.Rate()
		r.notef("%d creates a transaction; the database alone makes %.0f/s of them, that is %.0f %%", batch, r.alone, 100*r.rate/r.alone)
		return r, nil
	}
}

// onPostgres has eventsvc keep its events in the database of the stage.
func (b *bench) onPostgres() target.Options {
	return target.Options{Events: []string{"--store-dsn=" + b.database.DSN}}
}

// another starts a second replica. stop ends it, and removes its data.
func (b *bench) another() (up *target.Services, stop func() error, err error) {
	return b.beside(b.onPostgres())
}

// beside starts services beside those of the stage. stop ends them, and removes their data.
func (b *bench) beside(o target.Options) (up *target.Services, stop func() error, err error) {
	dir, err := os.MkdirTemp(b.tmp, "beside")
	if err != nil {
		return nil, nil, fmt.Errorf("directory of more services: %w", err)
	}
	if o.Hashes, err = b.hashes(); err != nil {
		return nil, nil, err
	}
	o.Profiles = b.profiles != ""
	up, err = target.Start(b.ctx, b.bin, dir, o)
	return up, func() error { return errors.Join(up.Stop(), os.RemoveAll(dir)) }, err
}

// lagInterval is that of 3,000 creates a second.
const lagInterval = time.Second / 3000

// lag is a row of a watch at one replica while events are created at another. The times are from the create to the
// delivery.
func lag(b *bench) (r *result, err error) {
	up, stop, err := b.another()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	namespace := b.fresh("lag")
	here, err := b.up.EventsOf(b.ctx, 0, namespace)
	if err != nil {
		return nil, err
	}
	there, err := up.EventsOf(b.ctx, 0, namespace)
	if err != nil {
		return nil, err
	}
	revision, err := up.Revision(b.ctx)
	if err != nil {
		return nil, err
	}
	spec := b.up.CreateSpec(here, 64)
	spec.Interval = lagInterval
	return b.fanout(b.eventsvc(), spec, load.WatchSpec{Addr: up.API(), Watchers: 1, Revision: revision, Request: there.Watch, Sample: there.CheckFrame})
}

// catchUp is a row of a replica that starts with nothing.
func catchUp(b *bench) (r *result, err error) {
	up, stop, err := b.another()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	n, err := floor.Records(b.ctx, b.database.DSN)
	if err = errors.Join(err, up.Events.Stop(), os.RemoveAll(up.DataDir()), os.MkdirAll(up.DataDir(), 0o700)); err != nil {
		return nil, err
	}
	r = &result{unit: "events/s"}
	err = b.measure(r, pid{}, func() (int, error) {
		_, err := up.StartEvents(b.ctx)
		return n, err
	})
	r.notef("%d records, the start of the process included", n)
	return r, err
}
