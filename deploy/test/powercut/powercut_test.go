//go:build linux

package powercut

import (
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tidings.example/deploy/test/internal/testenv"
)

var (
	long = flag.Bool("long", false, "cut the power 2,000 times instead of 200")
	seed = flag.Uint64("seed", 1, "of the first campaign; the long form counts up")
)

var eventsvc = flag.String("eventsvc", "", "binary to run, instead of those that the test builds")

// atOnce is how many chains run at the same time: they mostly wait.
const atOnce = 8

var modes = []mode{strict, ext4, journal}

// needDisk skips the test, or fails it in CI, where no disk can be mounted.
func needDisk(t *testing.T) {
	t.Helper()
	m, err := newDisk(strict).mount(t.TempDir())
	if err == nil {
		err = m.unmount()
	}
	if err != nil {
		testenv.Unable(t, "FUSE is needed, as root or with fusermount3: %v", err)
	}
}

func startIssuer(t *testing.T) *issuer {
	t.Helper()
	i, err := newIssuer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Close)
	return i
}

// TestPowerCuts cuts the power under each load in each mode. Every other chain
// runs a build whose log files are small. A violation names the seed:
//
//	go test ./powercut -run TestPowerCuts/strict/expire/ -seed 7
func TestPowerCuts(t *testing.T) {
	needDisk(t)
	const cuts = 8 // of one chain, at least
	binaries := []string{*eventsvc, *eventsvc}
	if *eventsvc == "" {
		binaries = []string{build(t), build(t, smallFiles)}
	}
	campaigns := uint64(1)
	if *long {
		campaigns = 10
	}
	keys := startIssuer(t)
	var chains, total, acknowledged atomic.Int64
	began := time.Now()
	var running sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for s := *seed; s < *seed+campaigns; s++ {
		for _, on := range modes {
			for i := range loads {
				free <- struct{}{}
				running.Go(func() {
					defer func() { <-free }()
					t.Run(fmt.Sprintf("%s/%s/seed=%d", on, loads[i].name, s), func(t *testing.T) {
						binary := binaries[(s+uint64(i))%2]
						if loads[i].evicts { // the room that a file has in advance is counted, and is more than a small one holds
							binary = binaries[0]
						}
						c := newChain(newMachine(t, binary, keys), on, &loads[i], s, t.TempDir())
						c.run(t.Context(), cuts)
						chains.Add(1)
						total.Add(int64(c.cuts))
						acknowledged.Add(c.model.confirmed)
						for _, text := range c.wrong {
							t.Errorf("%s", text)
						}
					})
				})
			}
		}
	}
	running.Wait()
	t.Logf("%d cuts, %d acknowledged writes in %v, seed %d", total.Load(), acknowledged.Load(), time.Since(began).Round(time.Second), *seed)
	all := chains.Load() == int64(campaigns)*int64(len(modes)*len(loads)) // or -run has picked some
	if least := int64(200 * campaigns); all && !t.Failed() && total.Load() < least {
		t.Errorf("%d cuts, want %d", total.Load(), least)
	}
}
