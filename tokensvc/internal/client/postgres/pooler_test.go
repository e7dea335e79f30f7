package postgres_test

import (
	"testing"

	"tidings.example/shared/pgtest"
	"tidings.example/tokensvc/internal/client/clienttest"
)

// Behind a PgBouncer that has no settings for it, the store works in each pool mode with the DSN that is documented.
func TestPgBouncer(t *testing.T) {
	t.Parallel()
	dsn := database(t, pgtest.Start(t), table+rows)
	for _, test := range []struct{ mode, parameter string }{
		{"session", ""},
		{"session", "&default_query_exec_mode=exec"},
		{"transaction", "&default_query_exec_mode=exec"},
		{"transaction", "&default_query_exec_mode=simple_protocol"},
	} {
		t.Run(test.mode+test.parameter, func(t *testing.T) {
			t.Parallel()
			pooled := pgtest.Pool(t, dsn, test.mode) + test.parameter
			clienttest.Test(t, open(t, pooled, 4))
		})
	}
}

// A session is read-only, and the time of its statements is limited, unless its role has a limit of its own. A pooler
// that gives each statement another connection is left alone: others would find the settings there.
func TestSession(t *testing.T) {
	t.Parallel()
	dsn := database(t, pgtest.Start(t), table+rows)
	for parameter, want := range map[string]string{
		"":                                       "on 1min",
		"&statement_timeout=500":                 "on 500ms",
		"&default_query_exec_mode=exec":          "off 0",
		"&default_query_exec_mode=describe_exec": "on 1min",
	} {
		got, err := open(t, dsn+parameter, 1).Session(t.Context())
		if err != nil || got != want {
			t.Errorf("%q: %q, want %q; %v", parameter, got, want, err)
		}
	}
}
