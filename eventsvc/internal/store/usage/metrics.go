package usage

import "github.com/prometheus/client_golang/prometheus"

// Collectors returns the metrics of the accounts and the limits.
func (u *Usage) Collectors() []prometheus.Collector {
	plain := func(name, help string, f func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f)
	}
	gauge := func(name, help string, f func(Stats) int64) prometheus.Collector {
		return plain(name, help, func() float64 { return float64(f(u.Stats())) })
	}
	return []prometheus.Collector{
		gauge("store_events", "Events that exist.", func(s Stats) int64 { return s.Events }),
		gauge("store_live_bytes", "Bytes of the events that exist.", func(s Stats) int64 { return s.LiveBytes }),
		gauge("store_history_bytes", "Bytes that only older states need.", func(s Stats) int64 { return s.HistoryBytes }),
		gauge("store_dead_bytes", "Bytes that nothing needs until they are compacted.", func(s Stats) int64 { return s.DeadBytes }),
		gauge("store_file_bytes", "Bytes that the files take on the disk.", func(s Stats) int64 { return s.FileBytes }),
		gauge("store_segments", "Files of the log.", func(s Stats) int64 { return int64(s.Segments) }),
		gauge("store_compressed_segments", "Files of the log whose records are compressed.", func(s Stats) int64 { return int64(s.Compressed) }),
		plain("store_events_limit", "About how many events fit into the bytes that the files may take, by what those take that exist; 0: no limit.",
			func() float64 { return float64(u.Stats().Fits()) }),
		gauge("store_revision", "Revision of the newest write.", func(s Stats) int64 { return int64(s.Revision) }),
		gauge("store_oldest_revision", "The oldest revision whose state can be read.", func(s Stats) int64 { return int64(s.Oldest) }),
		plain("store_full", "1 if there is no room for new events.", func() float64 {
			if create, _ := u.Full(0); create != nil {
				return 1
			}
			return 0
		}),
		plain("store_disk_free_bytes", "Bytes that the disk has left.", func() float64 { free, _ := u.Free(); return float64(free) }),
		plain("store_max_bytes", "Bytes that the files may take.", func() float64 { return float64(u.limits.MaxBytes) }),
	}
}
