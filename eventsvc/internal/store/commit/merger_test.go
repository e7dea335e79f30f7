package commit_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"tidings.example/eventsvc/internal/store"
	"tidings.example/eventsvc/internal/store/bolttest"
	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/storetest"
)

// TestWritersWaitForTheMerge: while what is in memory cannot be merged, writes wait before it has more than twice its
// limit and a commit. They are made when the store closes, whose next start reads them from the log.
func TestWritersWaitForTheMerge(t *testing.T) {
	t.Parallel()
	const limit, batch, all = 1000, 1024, 8000
	synctest.Test(t, func(t *testing.T) {
		p := bolttest.OpenParts(t, bolttest.PartsOptions{QueueLength: all, QueueBytes: 1 << 30})
		storetest.Replace(t, p.Files.Index.Path(), "/dev/full", os.O_RDWR)
		var written atomic.Int64
		var writers sync.WaitGroup
		for i := range all {
			long := store.Key{Namespace: "shop", Name: fmt.Sprint(i, strings.Repeat("x", 200))} // so that the file has to grow
			writers.Go(func() {
				if p.Committer.Queue.Submit(writeOf(context.Background(), seglog.Created, long, store.Seen{})) == nil {
					written.Add(1)
				}
			})
		}
		synctest.Wait()
		if n, size := written.Load(), p.Files.Index.Size(); n < 2*limit || n == all || size < 2*limit || size > 2*limit+batch {
			t.Errorf("%d of %d are written, %d are in memory and not to be merged yet", n, all, size)
		}
	})
}
