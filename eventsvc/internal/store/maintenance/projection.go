package maintenance

import (
	"time"

	"tidings.example/eventsvc/internal/store/seglog"
	"tidings.example/eventsvc/internal/store/usage"
)

// project finds the oldest event, and warns once when the limit of bytes is going to
// remove events before their retention has passed.
func (m *Maintenance) project() error {
	oldest := m.Clock.Now()
	found := uint64(0)
	_, at, err := m.newestVersions(m.first,
		func(*seglog.Entry) bool { return found == 0 },
		func(e *seglog.Entry) bool {
			oldest, found = e.Time, e.Revision
			return true
		})
	if err != nil {
		return err
	}
	if m.first = at; found > 0 {
		m.first = found - 1
	}
	stats, now, longest := m.Usage.Stats(), m.Clock.Now(), m.Policy.longest()
	age := stats.Projected(oldest, now)
	if !m.settled(age, now.Sub(oldest), stats.Compressed) {
		age = 0
	}
	before := time.Duration(m.projected.Swap(int64(age)))
	if age > 0 && age < longest && (before == 0 || before >= longest) {
		retention := longest.String()
		if longest == usage.Forever {
			retention = "for ever"
		}
		m.Log.Warn("--max-bytes is going to remove events before --retention has passed; raise it or lower --retention",
			"projected_age", age.Round(time.Second).String(), "retention", retention, "max_bytes", stats.MaxBytes)
	}
	return nil
}

// settled reports whether a projection can be trusted, by the age of the oldest event when the
// projection was made. A projection is several times too low while the first file waits to be
// compressed, and before the first events are removed that a rule keeps for a shorter time.
func (m *Maintenance) settled(projected, oldest time.Duration, compressed int) bool {
	if compressed == 0 && oldest < 2*m.Policy.CompressAfter {
		return false
	}
	for _, d := range m.Policy.retentions(m.Policy.rules()) {
		if d < m.Policy.longest() && d <= projected && oldest < d {
			return false
		}
	}
	return true
}
