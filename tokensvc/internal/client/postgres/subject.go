package postgres

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"tidings.example/shared/pgreason"
	"tidings.example/tokensvc/internal/client"
)

// BySubject implements [client.Store]. It makes one query for each subject. Only clients that send no client_id, and
// whose subject is not their id, need it.
func (s *Store) BySubject(ctx context.Context, issuer string, subjects []string) (client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, s.c.Timeout)
	defer cancel()
	for _, subject := range subjects {
		rows, err := s.bound(ctx, issuer, subject)
		if err != nil && ctx.Err() == nil {
			s.Reload() // as in ask
			rows, err = s.bound(ctx, issuer, subject)
		}
		switch {
		case err != nil:
			return client.Client{}, fmt.Errorf("read table clients: %w", pgreason.Of(err))
		case len(rows) > 1:
			s.c.Log.Error("registration not usable: assertion_issuer and assertion_subject are not unique in table clients", "row", rows[0].ID)
			return client.Client{}, fmt.Errorf("%w: not unique", client.ErrNotFound)
		case len(rows) == 1:
			return s.choose(rows, trimmed(&rows[0].ClientID))
		}
	}
	return client.Client{}, client.ErrNotFound
}

// bound returns at most two rows that are bound to the issuer and exactly the subject.
func (s *Store) bound(ctx context.Context, issuer, subject string) ([]row, error) {
	table := s.table.Load()
	if table == nil {
		var err error
		if table, err = s.lookAtTable(ctx); err != nil {
			return nil, err
		}
	}
	if !table.bound || !storable(issuer) || !storable(subject) {
		return nil, nil
	}
	var rows, exact []row
	err := s.db.WithContext(ctx).Select(table.columns).
		Where("assertion_issuer = ? AND assertion_subject = ?", issuer, subject).Limit(2).Find(&rows).Error
	for _, r := range rows {
		if trimmed(r.Issuer) == issuer && trimmed(r.Subject) == subject { // with some collations the query finds others
			exact = append(exact, r)
		}
	}
	return exact, err
}

// storable reports whether PostgreSQL takes a text: it refuses NUL and invalid UTF-8.
func storable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }
