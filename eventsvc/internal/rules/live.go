package rules

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/livefile"
)

// An event with this reason says that the rules are others than before. Its annotation has their [Set.Hash].
const (
	ChangedReason  = "RulesChanged"
	HashAnnotation = "tidings.example/rules"
)

// Config are the settings of a [Live].
type Config struct {
	Path     string // of the file; "": there are no rules
	Changed  func() // called after a later version has come into force; may be nil
	Log      *slog.Logger
	Registry prometheus.Registerer
}

// Live holds the rules in force and follows their file. A new version is read and checked as a whole before it replaces
// the rules. A bad version changes nothing. Run follows the file.
type Live struct {
	*livefile.File
	current atomic.Pointer[Set]
}

// NewLive reads the file. At this first time a bad file is an error.
func NewLive(c Config) (*Live, error) {
	l := &Live{}
	l.current.Store(&Set{})
	var err error
	l.File, err = livefile.Open(livefile.Config{
		Path: c.Path, MaxBytes: MaxFile, Metric: "eventsvc_rules", What: "rules", Changed: c.Changed, Log: c.Log, Registry: c.Registry,
		Apply: func(data []byte) error {
			s, err := Parse(data)
			if err != nil {
				return err
			}
			l.current.Store(s)
			for _, text := range s.Unreachable() {
				c.Log.Warn("a rule has no effect", "rule", text)
			}
			return nil
		},
	})
	return l, err
}

// Current returns the rules in force.
func (l *Live) Current() *Set { return l.current.Load() }

// Hash returns a text that differs between different rules; "" if there are none.
func (s *Set) Hash() string {
	if len(s.All()) == 0 {
		return ""
	}
	text, _ := json.Marshal(s.rules) // texts and numbers: no error
	return fmt.Sprintf("%x", sha256.Sum256(text))[:16]
}

// maxSummary keeps a summary shorter than the note of an event may be.
const maxSummary = 900

// Summary names the rules with what they do, for a log or the note of an event.
func (s *Set) Summary() string {
	var all []string
	length := 0
	for i := range s.All() {
		r := &s.rules[i]
		one := r.Name + " (" + r.String() + ")"
		if length += len(one) + 2; length > maxSummary {
			all = append(all, fmt.Sprintf("and %d more", len(s.rules)-i))
			break
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}
