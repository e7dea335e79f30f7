package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tidings.example/shared/pgreason"
	"tidings.example/tokensvc/internal/client"
)

// row is a registration in the table. The fields of missing columns are nil.
type row struct {
	ID         string
	ClientID   string
	Secret     *string    `gorm:"column:client_secret"`
	Name       *string    `gorm:"column:client_name"`
	Scope      *string    `gorm:"column:scope"`
	SecretNext *string    `gorm:"column:client_secret_next"`
	NextUntil  *time.Time `gorm:"column:client_secret_next_until"`
	Audience   *string    `gorm:"column:audience"` // JSON list of strings
	JWKS       *string    `gorm:"column:jwks"`
	PublicKeys *string    `gorm:"column:public_keys"` // in PEM
	Issuer     *string    `gorm:"column:assertion_issuer"`
	Subject    *string    `gorm:"column:assertion_subject"`
}

// TableName implements gorm's Tabler.
func (row) TableName() string { return "clients" }

// shape is how the table is read.
type shape struct {
	columns []string // expressions to select; columns of other types are converted
	id      string   // condition on client_id
	bound   bool     // it has the columns assertion_issuer and assertion_subject
}

// columns are read, by the expressions beside them. Optional columns may be missing, so that a table of
// another service can be used as it is.
var columns = []struct {
	name, expression string
	optional         bool
}{
	{name: "client_id", expression: "client_id::text AS client_id"},
	{name: "client_name", expression: "client_name"},
	{name: "client_secret", expression: "client_secret"},
	{name: "id", expression: "id::text AS id"},
	{name: "scope", expression: "scope"},
	{"assertion_issuer", "assertion_issuer", true},
	{"assertion_subject", "assertion_subject", true},
	{"audience", "to_json(audience)::text AS audience", true},
	{"client_secret_next", "client_secret_next", true},
	{"client_secret_next_until", "client_secret_next_until::timestamptz AS client_secret_next_until", true},
	{"jwks", "jwks::text AS jwks", true}, // json, jsonb or text
	{"public_keys", "public_keys", true},
}

// column is a column that this role may read: a row of PostgreSQL's catalog.
type column struct {
	Name string
	Text bool // it holds text of some kind
}

// lookAtTable reads which columns the table has, and stores how they are selected.
func (s *Store) lookAtTable(ctx context.Context) (*shape, error) {
	var found []column
	err := s.db.WithContext(ctx).Table("pg_attribute").
		Select("attname AS name", "typcategory = 'S' AS text").
		Joins("JOIN pg_type ON pg_type.oid = atttypid").
		Where("attrelid = to_regclass('clients') AND attnum > 0 AND NOT attisdropped").
		Where("has_column_privilege(attrelid, attnum, 'SELECT')").
		Find(&found).Error
	if err != nil {
		return nil, fmt.Errorf("ask for the columns of table clients: %w", pgreason.Of(err))
	}
	if len(found) == 0 {
		return nil, errors.New("there is no table clients that this role may read; create it, or GRANT SELECT ON clients")
	}
	var readable []string
	table := shape{id: "client_id IN ?"}
	for _, c := range found {
		readable = append(readable, c.Name)
		if c.Name == "client_id" && !c.Text {
			table.id = "client_id::text IN ?" // a column of type uuid, for example, cannot be compared with every text
		}
	}
	var missing []string
	for _, c := range columns {
		if slices.Contains(readable, c.name) {
			table.columns = append(table.columns, c.expression)
		} else if !c.optional {
			missing = append(missing, c.name)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("table clients has no column %s that this role may read", strings.Join(missing, ", "))
	}
	table.bound = slices.Contains(readable, "assertion_issuer") && slices.Contains(readable, "assertion_subject")
	s.table.Store(&table)
	return &table, nil
}

// client returns the registration of the row, with the checks of a clients file. Secrets must be BCrypt hashes.
func (r row) client(clientID string, parsed *parsedKeys) (client.Client, error) {
	c := client.Client{ID: r.ID, ClientID: clientID, Name: trimmed(r.Name), Scope: trimmed(r.Scope)}
	c.Bound = client.Binding{Issuer: trimmed(r.Issuer), Subject: trimmed(r.Subject)}
	var err error
	if c.Secrets, err = client.ParseSecrets(trimmed(r.Secret), trimmed(r.SecretNext), r.NextUntil, hashed); err != nil {
		return c, err
	}
	if c.Keys, err = parsed.of(trimmed(r.JWKS), trimmed(r.PublicKeys)); err != nil {
		return c, err
	}
	if r.Audience != nil {
		if err := json.Unmarshal([]byte(*r.Audience), &c.Audience); err != nil {
			return c, fmt.Errorf("audience: must be text[]: %w", err)
		}
	}
	return c, c.Validate()
}

func hashed(stored string) (client.Secret, error) {
	secret, err := client.ParseSecret(stored)
	if err == nil && secret.Plain() {
		err = errors.New("plain text is accepted in a clients file only; store a BCrypt hash")
	}
	return secret, err
}

// trimmed removes the padding of a fixed-length column. NULL is the empty string.
func trimmed(s *string) string {
	if s == nil {
		return ""
	}
	return strings.TrimRight(*s, " ")
}
