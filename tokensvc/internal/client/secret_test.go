package client_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"tidings.example/tokensvc/internal/client"
	"tidings.example/tokensvc/internal/client/clienttest"
)

func TestParseSecret(t *testing.T) {
	t.Parallel()
	tail := clienttest.Hash[7:]
	for _, tc := range []struct {
		stored string
		ok     bool
	}{
		{clienttest.Hash, true},
		{"$2b$12$" + tail, true},
		{"$2y$14$" + tail, true},
		{"{bcrypt}" + clienttest.Hash, true},
		{"{noop}plain", true},
		{"", false},
		{"plain", false},
		{"{noop}", false},
		{"{bcrypt}", false},
		{"{bcrypt}{bcrypt}" + clienttest.Hash, false},
		{"{pbkdf2}" + clienttest.Hash, false},
		{" " + clienttest.Hash, false},
		{clienttest.Hash + "x", false}, // Go's bcrypt ignores the last character
		{clienttest.Hash[:59], false},
		{"$2x$10$" + tail, false}, // hashes of a faulty implementation
		{"$2z$10$" + tail, false},
		{"$2$10$" + tail + "x", false},
		{"$1a$10$" + tail, false},
		{"$2a$09$" + tail, false},
		{"$2a$15$" + tail, false},
		{"$2a$1x$" + tail, false},
		{"$2a$10." + tail, false},
		{"$2a$10$" + strings.Replace(tail, "M", "!", 1), false},
	} {
		s, err := client.ParseSecret(tc.stored)
		if (err == nil) != tc.ok {
			t.Errorf("%q: error %v", tc.stored, err)
		}
		if shown := fmt.Sprintf("%v %+v %#v %s", s, s, s, err); strings.Contains(shown, "plain") || strings.Contains(shown, tail) {
			t.Errorf("%q can be seen in %s", tc.stored, shown)
		}
	}
}

func TestHashSecret(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		secret string
		cost   int
		ok     bool
	}{
		{"s3cret", 10, true}, {strings.Repeat("x", 72), 10, true}, {"p@ss wörd\r", 10, true},
		{"", 10, false}, {strings.Repeat("x", 73), 10, false}, {"a\x00b", 10, false}, {"s3cret", 9, false}, {"s3cret", 15, false},
	} {
		hash, err := client.HashSecret(tc.secret, tc.cost)
		if (err == nil) != tc.ok {
			t.Errorf("%q, cost %d: error %v", tc.secret, tc.cost, err)
		}
		if err != nil {
			continue
		}
		if _, err := client.ParseSecret(hash); err != nil {
			t.Errorf("%q: own hash refused: %v", tc.secret, err)
		}
	}
}

// FuzzParseSecret: Go's bcrypt can compare with every hash that is accepted, and its cost is an accepted one.
func FuzzParseSecret(f *testing.F) {
	for _, s := range []string{clienttest.Hash, "{bcrypt}" + clienttest.Hash, "{noop}x", "$2a$10$", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, stored string) {
		s, err := client.ParseSecret(stored)
		if err != nil || s.Plain() {
			return
		}
		cost, err := bcrypt.Cost([]byte(strings.TrimPrefix(stored, "{bcrypt}")))
		if err != nil || cost < client.MinCost || cost > client.MaxCost {
			t.Errorf("%q accepted: cost %d, %v", stored, cost, err)
		}
	})
}

// FuzzMatchesHash: a hash of any version matches only the secret that it was made of. BCrypt itself repeats the bytes
// before a NUL and ignores those after the 72nd.
func FuzzMatchesHash(f *testing.F) {
	long := strings.Repeat("0123456789", 8)
	for _, s := range []struct{ stored, given string }{
		{"s3cret", "s3cret"}, {"s3cret", "S3cret"}, {"s3cret", "s3cret\x00s3cret"}, {"s3cret", ""}, {"é\xff", "é\xff"}, {"s3cret", "s3cret\x00"},
		{long[:71], long[:72]}, {long[:72], long}, {long[:72], long[:71]},
	} {
		f.Add(s.stored, s.given, byte(1))
	}
	f.Fuzz(func(t *testing.T, stored, given string, minor byte) {
		if stored == "" || len(stored) > 72 || strings.Contains(stored, "\x00") {
			return // HashSecret refuses it
		}
		made, err := bcrypt.GenerateFromPassword([]byte(stored), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		made[2] = "aby"[minor%3]
		for _, secret := range []string{stored, given} {
			if got := client.MatchesHash(string(made), secret); got != (secret == stored) {
				t.Errorf("%q with the hash of %q: %v", secret, stored, got)
			}
		}
	})
}
