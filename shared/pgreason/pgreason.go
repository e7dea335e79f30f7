// Package pgreason says why there is no connection to a PostgreSQL database.
package pgreason

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Of returns an error of pgx without what pgx says of the DSN. Of several attempts to connect, those that ended because
// the server has no TLS come last: by default pgx then tries without, and how that fails is why there is no connection.
func Of(err error) error {
	failed := new(pgconn.ConnectError)
	if !errors.As(err, &failed) {
		return err
	}
	err = failed.Unwrap()
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		causes := slices.Clone(all.Unwrap())
		slices.SortStableFunc(causes, func(a, b error) int { return cmp.Compare(withoutTLS(a), withoutTLS(b)) })
		err = errors.Join(causes...)
	}
	return fmt.Errorf("no connection to the database: %w", err)
}

// withoutTLS returns 1 for the error of a server that has no TLS, for which pgx has no type, and 0 for any other.
func withoutTLS(err error) int {
	if strings.HasSuffix(err.Error(), "server refused TLS connection") {
		return 1
	}
	return 0
}
