package basic

import (
	"net/http"
	"time"
)

const (
	refusedFor = 10 * time.Second // how long a refusal is remembered
	guesses    = 5                // refused secrets of an id from a source in that time; with more it has to wait
	provenFor  = time.Hour        // after a good trade, in which guesses of others do not matter
)

var errGuessed = &BusyError{Reason: "too many different passwords of this user were refused", Status: http.StatusTooManyRequests, RetryAfter: refusedFor}

// guessing reports whether so many secrets were refused lately that another one is not tried. The grant is the last one
// of this secret, or nil.
func (t *Trader) guessing(guesser sum, g *grant, now time.Time) bool {
	if g != nil && now.Sub(g.traded) <= provenFor {
		return false
	}
	times, _ := t.guessed.Get(guesser)
	of, _ := times.([guesses]time.Time)
	return !of[0].IsZero() && now.Sub(of[0]) < refusedFor // of[0] is the oldest of the last five
}

// noteGuess notes a refusal. Two at the same time may be noted as one.
func (t *Trader) noteGuess(guesser sum, now time.Time) {
	times, _ := t.guessed.Get(guesser)
	of, _ := times.([guesses]time.Time)
	copy(of[:], of[1:])
	of[guesses-1] = now
	t.guessed.Add(guesser, of)
}
