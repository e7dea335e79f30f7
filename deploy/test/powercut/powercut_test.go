//go:build linux

package powercut

import (
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"
)

var (
	long = flag.Bool("long", false, "cut the power 2,000 times instead of 200")
	seed = flag.Uint64("seed", 1, "of the first campaign; the long form counts up")
)

var eventsvc = flag.String("eventsvc", "", "binary to run, instead of those that the test builds")

var modes = []mode{strict, ext4, journal}

// needDisk skips the test, or fails it in CI, where no disk can be mounted.
func needDisk(t *testing.T) {
	t.Helper()
	m, err := newDisk(strict).mount(t.TempDir())
	if err == nil {
		err = m.unmount()
	}
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatalf("FUSE is needed, as root or with fusermount3: %v", err)
	default:
		t.Skipf("FUSE is needed, as root or with fusermount3: %v", err)
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
//	go test ./powercut -run TestPowerCuts/strict/expire -seed 7
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
	var total, acknowledged atomic.Int64
	began := time.Now()
	for _, on := range modes {
		t.Run(string(on), func(t *testing.T) {
			for i := range loads {
				for s := *seed; s < *seed+campaigns; s++ {
					t.Run(fmt.Sprintf("%s/seed=%d", loads[i].name, s), func(t *testing.T) {
						t.Parallel()
						c := newChain(machine{binary: binaries[(s+uint64(i))%2], issuer: keys}, on, &loads[i], s, t.TempDir())
						c.run(t.Context(), cuts)
						total.Add(int64(c.cuts))
						acknowledged.Add(c.model.confirmed)
						for _, text := range c.wrong {
							t.Errorf("%s", text)
						}
					})
				}
			}
		})
	}
	t.Logf("%d cuts, %d acknowledged writes in %v, seed %d", total.Load(), acknowledged.Load(), time.Since(began).Round(time.Second), *seed)
	if least := int64(200 * campaigns); !t.Failed() && total.Load() < least {
		t.Errorf("%d cuts, want %d", total.Load(), least)
	}
}
