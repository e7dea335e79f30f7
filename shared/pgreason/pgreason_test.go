package pgreason_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"tidings.example/shared/pgreason"
	"tidings.example/shared/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m.Run)) }

// Of a server without TLS the true cause comes first, also if the DSN names several servers.
func TestServerWithoutTLS(t *testing.T) {
	t.Parallel()
	server, err := pgx.ParseConfig(pgtest.Start(t).Database(t))
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("%s:%d", server.Host, server.Port)
	for dsn, want := range map[string]string{
		"postgres://nobody:wrong@" + at + "/postgres":                                                         "password authentication failed",
		"postgres://nobody:wrong@" + at + "," + at + "/postgres?sslmode=allow":                                "password authentication failed",
		fmt.Sprintf("postgres://%s:%s@%s/none", server.User, server.Password, at):                             "does not exist",
		fmt.Sprintf("postgres://%s:%s@%s,127.0.0.1:1/none?sslmode=require", server.User, server.Password, at): "connection refused",
		fmt.Sprintf("postgres://%s:%s@%s/none?sslmode=require", server.User, server.Password, at):             "server refused TLS connection",
		fmt.Sprintf("postgres://%s:%s@%s/postgres?unknown_setting=1", server.User, server.Password, at):       "unknown_setting",
	} {
		_, err := pgx.Connect(t.Context(), dsn)
		got := fmt.Sprint(pgreason.Of(fmt.Errorf("asked: %w", err)))
		first, _, _ := strings.Cut(got, "\n")
		if !strings.HasPrefix(first, "no connection to the database: ") || !strings.Contains(first, want) || strings.Contains(got, server.Password) {
			t.Errorf("%q does not begin with %q, or has the password", got, want)
		}
	}
	if err := errors.New("other"); !errors.Is(pgreason.Of(err), err) || pgreason.Of(err).Error() != err.Error() || pgreason.Of(nil) != nil || !errors.Is(pgreason.Of(io.EOF), io.EOF) {
		t.Error("an error that is none of a connection is changed")
	}
}
