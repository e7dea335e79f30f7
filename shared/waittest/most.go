//go:build !race

package waittest

import "time"

// Most is how long a test waits: 10 s, and a minute under the race detector, which makes programs up to twenty times slower.
const Most = 10 * time.Second
