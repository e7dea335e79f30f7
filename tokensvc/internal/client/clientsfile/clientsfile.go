// Package clientsfile has the registrations of a file. A new version of it counts within a second, and at once after a
// SIGHUP (package livefile). One with a mistake changes nothing.
package clientsfile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"sigs.k8s.io/yaml"

	"tidings.example/shared/livefile"
	"tidings.example/tokensvc/internal/client"
)

// maxFile is the largest file, in bytes: about 50,000 clients.
const maxFile = 16 << 20

// Store is a client.Store of registrations that were read from a file, which Run follows. It compares contents, because
// the modification time of a file in a mounted Kubernetes secret does not show every change.
type Store struct {
	*livefile.File
	log *slog.Logger
	set atomic.Pointer[set]
}

// set is the registrations of a file.
type set struct {
	clients map[string]client.Client
	bound   map[client.Binding][]string // the ids of the clients with an assertion_subject
}

// registration is one client as written in the file; times are RFC 3339.
type registration struct {
	ClientID     string     `json:"client_id"`
	ClientName   string     `json:"client_name"`
	ClientSecret string     `json:"client_secret"`
	SecretNext   string     `json:"client_secret_next"`
	NextUntil    *time.Time `json:"client_secret_next_until"`
	Scope        string     `json:"scope"`
	Audience     []string   `json:"audience"`

	JWKS       json.RawMessage `json:"jwks"`
	PublicKeys string          `json:"public_keys"` // in PEM
	Issuer     string          `json:"assertion_issuer"`
	Subject    string          `json:"assertion_subject"`
}

// Open reads the file at path. A later version that cannot be used is logged, and the clients stay as they were.
func Open(path string, log *slog.Logger) (*Store, error) {
	s := &Store{log: log}
	var err error
	s.File, err = livefile.Open(livefile.Config{Path: path, MaxBytes: maxFile, Apply: s.apply, Log: log})
	return s, err
}

// ByClientID implements [client.Store].
func (s *Store) ByClientID(_ context.Context, clientID string) (client.Client, error) {
	c, ok := s.set.Load().clients[clientID]
	if !ok {
		return client.Client{}, client.ErrNotFound
	}
	return c, nil
}

// BySubject implements [client.Store].
func (s *Store) BySubject(_ context.Context, issuer string, subjects []string) (client.Client, error) {
	loaded := s.set.Load()
	for _, subject := range subjects {
		switch ids := loaded.bound[client.Binding{Issuer: issuer, Subject: subject}]; len(ids) {
		case 0:
		case 1:
			return loaded.clients[ids[0]], nil
		default:
			return client.Client{}, fmt.Errorf("%w: assertion_subject is not unique", client.ErrNotFound)
		}
	}
	return client.Client{}, client.ErrNotFound
}

// Reload reads the file now, and puts it into force again if it is the same.
func (s *Store) Reload() { s.Recheck() }

// Ready returns nil: the file was read before.
func (s *Store) Ready(context.Context) error { return nil }

// Close does nothing.
func (s *Store) Close() error { return nil }

func (s *Store) apply(data []byte) error {
	loaded, err := parse(data, s.set.Load())
	if err != nil {
		return err
	}
	for _, c := range loaded.clients {
		for _, secret := range c.Secrets {
			if secret.Plain() {
				s.log.Warn("a client secret is stored as plain text; use this for demonstrations only", "client_id", c.ClientID)
			}
		}
	}
	s.set.Store(loaded)
	s.log.Info("clients loaded", "clients", len(loaded.clients))
	return nil
}

// readable names the field with a value of the wrong kind, instead of a Go type.
func readable(err error) error {
	kind, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	want := map[reflect.Kind]string{reflect.Struct: "a map", reflect.Slice: "a list", reflect.String: "text"}[kind.Type.Kind()]
	return fmt.Errorf("%s: %s stands where %s belongs", cmp.Or(kind.Field, "the file"), kind.Value, cmp.Or(want, "another value"))
}

// parse reads a file. A mistake is an error for the whole file. Registrations that existed before keep their id.
func parse(data []byte, before *set) (*set, error) {
	var file struct {
		Clients []registration `json:"clients"`
	}
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		return nil, fmt.Errorf("not a list of clients in YAML or JSON, such as clients: [{client_id: …, client_secret: …, scope: …}]: %w", readable(err))
	}
	if len(file.Clients) == 0 {
		return nil, errors.New("clients: must list at least one client")
	}
	loaded := set{clients: make(map[string]client.Client, len(file.Clients)), bound: map[client.Binding][]string{}}
	for i, e := range file.Clients {
		c, err := e.client()
		if err != nil {
			return nil, fmt.Errorf("clients[%d].%w", i, err)
		}
		if _, twice := loaded.clients[c.ClientID]; twice {
			return nil, fmt.Errorf("clients[%d].client_id: %q is listed twice", i, c.ClientID)
		}
		c.ID = uuid.NewString()
		if before != nil {
			if old, ok := before.clients[c.ClientID]; ok {
				c.ID = old.ID
			}
		}
		loaded.clients[c.ClientID] = c
		if c.Bound.Subject != "" {
			loaded.bound[c.Bound] = append(loaded.bound[c.Bound], c.ClientID)
		}
	}
	return &loaded, nil
}

func (e registration) client() (client.Client, error) {
	c := client.Client{ClientID: e.ClientID, Name: e.ClientName, Scope: e.Scope, Audience: e.Audience}
	c.Bound = client.Binding{Issuer: e.Issuer, Subject: e.Subject}
	if e.SecretNext == "" && e.NextUntil != nil {
		return c, errors.New("client_secret_next_until: needs client_secret_next")
	}
	var err error
	if c.Secrets, err = client.ParseSecrets(e.ClientSecret, e.SecretNext, e.NextUntil, client.ParseSecret); err != nil {
		return c, err
	}
	if c.Keys, err = client.ParseKeys(e.JWKS, []byte(e.PublicKeys)); err != nil {
		return c, err
	}
	return c, c.Validate()
}
