package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"tidings.example/shared/cli"
)

// Admin returns the handler of the management listener: the probes with the reasons of failed checks, and the metrics.
// It requires no credentials, so it must be on an address that only operators can reach.
func Admin(h *Health, reg *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/livez", "/readyz", "/healthz"} {
		probe := h.handler(path, true)
		mux.Handle(path, probe)
		mux.Handle(path+"/", probe)
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{Registry: reg}))
	return mux
}

// Healthcheck asks the readiness probe of the management listener at addr, given as to its setting, and returns an
// error with the text of the probe unless it passes. With wait > 0 it asks again until the probe passes or the time is
// over. It is for containers without a shell and for scripts.
func Healthcheck(ctx context.Context, addr string, wait time.Duration) error {
	address, err := LocalAddress(addr)
	if err != nil {
		return cli.Usagef("--listen-admin %q: %w; give HOST:PORT", addr, err)
	}
	url := "http://" + address + "/readyz"
	client := &http.Client{Timeout: checkTimeout + time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	deadline := time.Now().Add(wait)
	for {
		err := probe(ctx, client, url)
		if err == nil || !time.Now().Before(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// LocalAddress returns where a program on the same machine reaches a listener.
func LocalAddress(listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1" // the service listens on all addresses
	}
	return net.JoinHostPort(host, port), err
}

func probe(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("health check: %w", err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("health check: no answer: %w; is it running, and --listen-admin right?", err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		return fmt.Errorf("health check: %s: %w", url, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("health check: %s answered %d: %s", url, resp.StatusCode, strings.TrimSpace(string(body)))
	}
	return nil
}
