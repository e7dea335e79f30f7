-- The timeline of this server: one more after each promotion of a standby.
CREATE FUNCTION timeline() RETURNS integer LANGUAGE sql STABLE AS
    $$ SELECT ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::integer $$;

-- The state of the whole store. Every commit locks this row, so the order of revisions is the order of commits and none is
-- missing.
CREATE TABLE head (
    single           boolean     PRIMARY KEY DEFAULT true CHECK (single),
    cluster          uuid        NOT NULL DEFAULT gen_random_uuid(), -- names the database; a replica refuses another one
    epoch            bigint      NOT NULL DEFAULT 1, -- rises when a failover has lost commits, or may have
    timeline         integer     NOT NULL DEFAULT timeline(), -- of the newest commit
    synchronous      boolean     NOT NULL DEFAULT false, -- the newest commit has waited for a standby
    revision         bigint      NOT NULL DEFAULT 1, -- of the newest write
    time             timestamptz NOT NULL DEFAULT '-infinity', -- of that write; it never falls
    compact_revision bigint      NOT NULL DEFAULT 1, -- states before it cannot be read any more
    removed_revision bigint      NOT NULL DEFAULT 1, -- up to it, records that are not the newest of their event may be missing
    partition_end    bigint      NOT NULL DEFAULT 0, -- the log has partitions for revisions below it
    secret           bytea       NOT NULL DEFAULT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) -- of the console's sessions
);
INSERT INTO head DEFAULT VALUES;

-- The newest revision that is known to be on the standbys that commits wait for. PostgreSQL shows a commit before they have it
-- when somebody cancels its wait, or after a crash, and a failover loses it then: replicas show nothing beyond this revision.
-- It is not in head, whose row is locked while a commit waits.
CREATE TABLE confirmed (
    single   boolean PRIMARY KEY DEFAULT true CHECK (single),
    revision bigint  NOT NULL DEFAULT 1
);
INSERT INTO confirmed DEFAULT VALUES;

-- Every change, the newest version of each event among them. A deletion has no attributes, and its value says who asked for it.
CREATE TABLE log (
    revision   bigint      NOT NULL,
    op         smallint    NOT NULL, -- 1 created, 2 modified, 3 deleted
    namespace  text        NOT NULL COLLATE "C",
    name       text        NOT NULL COLLATE "C",
    previous   bigint      NOT NULL, -- revision of the version before, 0: none
    time       timestamptz NOT NULL,
    attributes bytea       NOT NULL,
    value      bytea       NOT NULL,
    PRIMARY KEY (revision)
) PARTITION BY RANGE (revision);

-- The events that exist, with the revision of their newest version.
CREATE TABLE objects (
    namespace text   NOT NULL COLLATE "C",
    name      text   NOT NULL COLLATE "C",
    revision  bigint NOT NULL,
    PRIMARY KEY (namespace, name)
);

-- The last batch of each replica, by which it learns what became of a commit whose answer was lost.
CREATE TABLE writer (
    id             uuid        PRIMARY KEY,
    batch          bigint      NOT NULL,
    first_revision bigint      NOT NULL, -- of the batch; greater than last_revision if it has written nothing
    last_revision  bigint      NOT NULL,
    time           timestamptz NOT NULL
);

-- Sessions of the console that have ended before their time.
CREATE TABLE ended_session (
    id    text        PRIMARY KEY,
    until timestamptz NOT NULL -- when it ends anyway
);

-- The clock of writes, which tests replace.
CREATE FUNCTION wall_clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()';

-- Partitions have this many revisions, so that old ones can be dropped instead of being deleted row by row.
CREATE FUNCTION partition_size() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 1048576::bigint';

-- Makes the partition that begins with the revision after the last one, rounded down. Attaching takes a weaker lock than
-- CREATE TABLE ... PARTITION OF, which would wait for every dump. Owners alone may make tables, so it runs as its owner.
CREATE FUNCTION add_partition(after bigint) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    low  bigint := (after + 1) / partition_size() * partition_size();
    high bigint := low + partition_size();
    name text   := 'log_' || low;
BEGIN
    IF to_regclass(name) IS NULL THEN
        EXECUTE format('CREATE TABLE %I (LIKE log INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES)', name);
        EXECUTE format('ALTER TABLE log ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', name, low, high);
    END IF;
    RETURN high;
END $$;

-- Commits a batch of writes, no two of one event. seen is the revision that the event must have, 0 if it must not exist. A
-- write that does not find that is refused alone: its revision in the answer is 0. This is a function so that the head row is
-- locked for no round trip.
CREATE FUNCTION commit_batch(
    epoch_ bigint, writer_ uuid, batch_ bigint,
    ops smallint[], namespaces text[], names text[], seens bigint[], attrs bytea[], vals bytea[],
    OUT revisions bigint[], OUT head_revision bigint, OUT stamp timestamptz
) LANGUAGE plpgsql AS $$
DECLARE
    h     head%ROWTYPE;
    added bigint;
    room  bigint;
BEGIN
    SELECT * INTO STRICT h FROM head FOR UPDATE;
    IF h.epoch <> epoch_ THEN
        RAISE EXCEPTION 'the epoch is %, not %', h.epoch, epoch_ USING ERRCODE = 'TD001';
    END IF;
    room := h.partition_end;
    WHILE h.revision + cardinality(ops) >= room LOOP
        room := add_partition(greatest(h.revision, room - 1));
    END LOOP;
    stamp := greatest(wall_clock(), h.time);
    WITH asked AS (
        SELECT * FROM unnest(ops, namespaces, names, seens, attrs, vals)
            WITH ORDINALITY AS a (op, namespace, name, seen, attributes, value, i)
    ), accepted AS MATERIALIZED (
        SELECT a.*, h.revision + row_number() OVER (ORDER BY a.i) AS revision
        FROM asked a LEFT JOIN objects o ON o.namespace = a.namespace AND o.name = a.name
        WHERE coalesce(o.revision, 0) = a.seen
    ), logged AS (
        INSERT INTO log SELECT revision, op, namespace, name, seen, stamp, attributes, value FROM accepted ORDER BY i
    ), created AS (
        INSERT INTO objects SELECT namespace, name, revision FROM accepted WHERE op = 1
    ), modified AS (
        UPDATE objects o SET revision = a.revision FROM accepted a
        WHERE a.op = 2 AND o.namespace = a.namespace AND o.name = a.name
    ), deleted AS (
        DELETE FROM objects o USING accepted a WHERE a.op = 3 AND o.namespace = a.namespace AND o.name = a.name
    )
    SELECT array_agg(coalesce(accepted.revision, 0) ORDER BY n), count(accepted.revision)
    INTO revisions, added
    FROM generate_series(1, cardinality(ops)) n LEFT JOIN accepted ON accepted.i = n;
    head_revision := h.revision + added;

    INSERT INTO writer VALUES (writer_, batch_, h.revision + 1, head_revision, stamp)
    ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, first_revision = excluded.first_revision,
        last_revision = excluded.last_revision, time = excluded.time
    WHERE writer.batch < excluded.batch;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'batch % was given up', batch_ USING ERRCODE = 'TD002';
    END IF;
    IF added > 0 THEN
        UPDATE head SET revision = head_revision, time = stamp, partition_end = room,
            timeline = timeline(), synchronous = current_setting('synchronous_standby_names') <> '';
        IF current_setting('synchronous_standby_names') = '' THEN -- else confirm does so
            PERFORM pg_notify('eventsvc_log', writer_::text);
        END IF;
    END IF;
END $$;

-- Says that everything up to a revision is on the standbys. It waits neither for them nor for the disk: what is lost in a crash
-- is found out again. A server that does not have the revision was promoted since.
CREATE FUNCTION confirm(revision_ bigint, writer_ text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
    UPDATE confirmed SET revision = revision_ WHERE revision < revision_ AND EXISTS (SELECT FROM head h WHERE h.revision >= revision_);
    PERFORM pg_notify('eventsvc_log', writer_); -- also if a later one was confirmed: its replica does not listen to itself
END $$;

-- Says which revisions a batch has, whose answer was lost, and keeps it from being committed from now on. It waits for a
-- commit that is still under way, by the lock of the head row.
CREATE FUNCTION resolve_batch(writer_ uuid, batch_ bigint, OUT first bigint, OUT last bigint, OUT head_revision bigint)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT revision INTO STRICT head_revision FROM head FOR UPDATE;
    INSERT INTO writer VALUES (writer_, batch_, 1, 0, clock_timestamp())
    ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, first_revision = 1, last_revision = 0, time = excluded.time
    WHERE writer.batch < excluded.batch;
    SELECT w.first_revision, w.last_revision INTO STRICT first, last FROM writer w WHERE w.id = writer_;
END $$;

-- Moves the head to a revision that no client knows, and gives up all states before it. It does nothing if the epoch is not
-- the expected one: another replica came first.
CREATE FUNCTION skip_revisions(epoch_ bigint, revision_ bigint, new_epoch bigint, OUT done boolean) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE head SET revision = revision_, compact_revision = revision_, epoch = new_epoch,
        partition_end = 0, timeline = timeline()
    WHERE epoch = epoch_ AND revision < revision_;
    done := FOUND;
    IF done THEN
        PERFORM pg_notify('eventsvc_log', '');
    END IF;
END $$;

-- Removes versions up to a revision that newer ones have superseded, and deletions, some at a time, and returns how far it
-- has come.
CREATE FUNCTION remove_history(upto bigint, most bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    h   head%ROWTYPE;
    to_ bigint;
BEGIN
    SELECT * INTO STRICT h FROM head;
    SELECT coalesce(max(r), upto) INTO to_ FROM (
        SELECT revision AS r FROM log WHERE revision > h.removed_revision AND revision <= upto ORDER BY revision LIMIT most
    ) next;
    IF to_ <= h.removed_revision THEN
        RETURN h.removed_revision;
    END IF;
    DELETE FROM log WHERE revision IN (
        SELECT previous FROM log WHERE revision > h.removed_revision AND revision <= to_ AND previous > 0
    );
    DELETE FROM log WHERE revision > h.removed_revision AND revision <= to_ AND op = 3;
    -- Last, because commits wait from here on.
    UPDATE head SET removed_revision = greatest(removed_revision, to_), compact_revision = greatest(compact_revision, to_);
    RETURN to_;
END $$;

-- Drops partitions whose records are all removed, and returns how many.
CREATE FUNCTION drop_partitions() RETURNS integer LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    p       record;
    kept    boolean;
    dropped integer := 0;
    upto    bigint;
BEGIN
    SELECT removed_revision INTO STRICT upto FROM head;
    FOR p IN
        SELECT c.relname AS name, substr(c.relname, 5)::bigint AS low
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'log'::regclass
        ORDER BY 2
    LOOP
        EXIT WHEN p.low + partition_size() > upto;
        EXECUTE format('SELECT EXISTS (SELECT FROM %I)', p.name) INTO kept;
        IF NOT kept THEN
            EXECUTE format('DROP TABLE %I', p.name);
            dropped := dropped + 1;
        END IF;
    END LOOP;
    RETURN dropped;
END $$;

DO $$
DECLARE
    f text;
BEGIN
    -- Planned once for a table of any size: always by the keys. A plan from the time when the table was empty would read all
    -- of it later. Functions that run as their owner must not be led to tables of others by a search path.
    FOREACH f IN ARRAY ARRAY['commit_batch(bigint, uuid, bigint, smallint[], text[], text[], bigint[], bytea[], bytea[])',
        'remove_history(bigint, bigint)'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET enable_seqscan = off', f);
        EXECUTE format('ALTER FUNCTION %s SET enable_hashjoin = off', f);
        EXECUTE format('ALTER FUNCTION %s SET enable_mergejoin = off', f);
        EXECUTE format('ALTER FUNCTION %s SET jit = off', f); -- the row of head has no index to read it by, so its plan looks costly
    END LOOP;
    -- While it waits for a dump to end, commits wait behind it.
    ALTER FUNCTION drop_partitions() SET lock_timeout = '200ms';
    FOREACH f IN ARRAY ARRAY['add_partition(bigint)', 'drop_partitions()'] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = eventsvc, pg_temp', f);
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', f);
    END LOOP;
END $$;
