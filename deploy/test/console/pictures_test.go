package console_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "make the pictures of the docs again")

// stamp is an instant as the address has it.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// TestPictures makes screenshots of all main states, in both themes and three widths, where CONSOLE_SCREENSHOTS names a
// directory; with -update also those of the docs.
func TestPictures(t *testing.T) {
	t.Parallel()
	if os.Getenv("CONSOLE_SCREENSHOTS") == "" && !*update {
		t.Skip("makes pictures for people to look at: set CONSOLE_SCREENSHOTS=DIR, or use -update for those of the docs")
	}
	s, all := screens(t)
	b := openTab(t, s)
	b.open("/console/")
	b.signIn(admin)
	for name, address := range all {
		for _, dark := range []bool{false, true} {
			b.dark(dark)
			for size, width := range map[string]int64{"wide": 1440, "middle": 1024, "narrow": 390} {
				b.size(width, 900)
				visit(b, name, address)
				picture := name + "-" + size
				if dark {
					picture += "-dark"
				}
				b.shot(picture)
				if inDark, ok := pictured[name]; *update && ok && size == "wide" && dark == inDark {
					b.save(filepath.Join(root, "deploy/docs/images", "console-"+name+".webp"))
				}
			}
		}
	}
}

// pictured are the screens that the docs show, and whether in dark.
var pictured = map[string]bool{"overview": false, "events": true, "object": false, "changes": false}
