package query

import (
	"fmt"
	"strings"
	"time"
)

// FormatDuration formats a duration without units that are zero: 15m, 6d23h.
func FormatDuration(d time.Duration) string {
	d = d.Truncate(time.Second)
	var b strings.Builder
	for _, u := range []struct {
		name string
		d    time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}} {
		if n := d / u.d; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, u.name)
			d -= n * u.d
		}
	}
	if b.Len() == 0 {
		return "0s"
	}
	return b.String()
}
