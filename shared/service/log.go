package service

import (
	"log/slog"
	"os"
)

// Logger makes the logger of a process, which writes to w. The format is text or json; auto is text on a terminal and
// JSON elsewhere. The level is debug, info, warn or error.
func Logger(w *os.File, format, level string) (*slog.Logger, error) {
	options := &slog.HandlerOptions{}
	var threshold slog.Level
	if err := threshold.UnmarshalText([]byte(level)); err != nil {
		return nil, Usagef("--log-level: %q is no level: use debug, info, warn or error", level)
	}
	options.Level = threshold
	if format == "auto" || format == "" {
		format = "json"
		if info, err := w.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			format = "text"
		}
	}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	default:
		return nil, Usagef("--log-format: %q is no format: use auto, text or json", format)
	}
}
