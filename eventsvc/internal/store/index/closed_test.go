package index_test

import "testing"

// TestClosed: what an index counts of its file can be asked for at any time. Metrics are, while the file is replaced.
func TestClosed(t *testing.T) {
	t.Parallel()
	x := open(t, t.TempDir())
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if x.NeedsRewrite(0) || x.MergeBytes() < 0 || x.RewriteBytes() <= 0 {
		t.Errorf("%d bytes for merges, %d for a rewrite", x.MergeBytes(), x.RewriteBytes())
	}
}
