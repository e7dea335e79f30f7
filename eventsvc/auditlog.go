package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/eventsvc/internal/audit"
	"tidings.example/shared/service"
)

// openAudit opens the audit log. It returns nil if there is none.
func (s *serve) openAudit(log *slog.Logger, reg prometheus.Registerer) (*audit.Log, error) {
	if s.Audit == "off" {
		return nil, nil
	}
	path := s.AuditFile
	if path == "" {
		path = filepath.Join(s.DataDir, "audit.log")
	}
	entries, err := audit.Open(audit.Config{
		Path: path, MaxBytes: int64(s.AuditFileSize), Files: s.AuditFiles, RefuseWrites: s.AuditFailure == "refuse", Log: log, Registry: reg,
	})
	if err != nil {
		return nil, fmt.Errorf("--audit-file: %w", err)
	}
	return entries, nil
}

// auditTasks returns the task that writes the audit log, if there is one.
func auditTasks(entries *audit.Log) []func(context.Context) error {
	if entries == nil {
		return nil
	}
	return []func(context.Context) error{entries.Run}
}

// addAudit adds a check of the audit log to the probes. If writes are allowed without
// the log, its failure is a warning and the service stays ready.
func (s *serve) addAudit(health *service.Health, entries *audit.Log) {
	switch {
	case entries == nil:
	case s.AuditFailure == "refuse":
		health.Add("audit", entries.Failing)
	default:
		health.AddWarning("audit", entries.Failing)
	}
}
