package maintenance

import (
	"time"

	"tidings.example/eventsvc/internal/store/seglog"
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
	age := m.Usage.Stats().Projected(oldest, m.Clock.Now())
	short := age > 0 && age < m.Retention
	if short && m.projected.Load() == 0 || short && time.Duration(m.projected.Load()) >= m.Retention {
		m.Log.Warn("--max-bytes is going to remove events before --retention has passed; raise it or lower --retention",
			"projected_age", age.Round(time.Second).String(), "retention", m.Retention.String(), "max_bytes", m.Usage.Stats().MaxBytes)
	}
	m.projected.Store(int64(age))
	return nil
}
