package attack

import (
	"fmt"

	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/target"
)

// guessers is the number of connections that guess: half of them the secret
// of a client that also works, half of them ids that do not exist.
const guessers = 8

// Guesses sends wrong secrets and unknown ids at full speed.
func Guesses(s *target.Services) load.Spec {
	wrong := s.TokenRequest(target.ClientID(0), "wrong-"+target.ClientSecret)
	return load.Spec{
		Addr: s.TokenAddr, Conns: guessers,
		Next: func(dst []byte, i int) []byte {
			if i%2 == 0 {
				return append(dst, wrong...)
			}
			return append(dst, s.TokenRequest(fmt.Sprintf("nobody-%d", i), target.ClientSecret)...)
		},
		Check: func(_ int, a *load.Answer) error {
			if a.Status != 401 && a.Status != 429 {
				return fmt.Errorf("a guess is answered with status %d: %.300s", a.Status, a.Body)
			}
			return nil
		},
	}
}

// QueuedGuesses are requests for unknown ids. They make the timed
// requests wait.
func QueuedGuesses(s *target.Services) load.Spec {
	return load.Spec{
		Addr: s.TokenAddr, Conns: 3,
		Next: func(dst []byte, i int) []byte {
			return append(dst, s.TokenRequest(fmt.Sprint("nobody-", i), target.ClientSecret)...)
		},
		Check: load.Status(401),
	}
}

// Forgeries sends assertions with signatures that nobody made, at full speed.
func Forgeries(s *target.Services) load.Spec {
	return load.Spec{
		Addr: s.TokenAddr, Conns: guessers,
		Next: func(dst []byte, i int) []byte {
			client := target.SignerID(target.RS256, 0)
			if i%2 == 1 {
				client = fmt.Sprintf("nobody-%d", i)
			}
			return append(dst, s.ForgedRequest(target.RS256, "", client, client)...)
		},
		Check: func(_ int, a *load.Answer) error {
			if a.Status != 401 && a.Status != 429 {
				return fmt.Errorf("a forged assertion is answered with status %d: %.300s", a.Status, a.Body)
			}
			return nil
		},
	}
}
