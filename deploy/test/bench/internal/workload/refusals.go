package workload

import (
	"fmt"
	"math/rand/v2"
	"time"

	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/target"
)

// Refusals asks for tokens that are refused, for clients that are known and for those that are not, in random order on
// one connection. It adds the times of the answers to times: of known ones to the first, of others to the second.
func Refusals(s *target.Services, samples int, request func(i int, known bool) []byte, times *[2][]time.Duration) load.Spec {
	order := rand.Perm(2 * samples)
	var begun time.Time
	return load.Spec{
		Addr: s.TokenAddr, Conns: 1, Limit: len(order),
		Next: func(dst []byte, i int) []byte {
			refused := request(order[i]/2, order[i]%2 == 0)
			begun = time.Now()
			return append(dst, refused...)
		},
		Check: func(i int, a *load.Answer) error {
			times[order[i]%2] = append(times[order[i]%2], time.Since(begun))
			return load.Status(401)(i, a)
		},
	}
}

// RefusalsAtOnce sends more wrong secrets of a client at once than may wait, and says how often each status was the
// answer.
func RefusalsAtOnce(s *target.Services, client string) (string, error) {
	count := map[int]int{}
	err := load.Do(load.Spec{
		Addr: s.TokenAddr, Conns: 24, Limit: 24,
		Next: func(dst []byte, i int) []byte {
			return append(dst, s.TokenRequest(client, fmt.Sprint("guess-", i))...)
		},
		Check: func(_ int, a *load.Answer) error { count[a.Status]++; return nil },
	}, time.Minute)
	return fmt.Sprintf("%d × 401, %d × 429", count[401], count[429]), err
}
