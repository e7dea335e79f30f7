package main

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The benchmarks ask a running service over loopback connections, with BCrypt clients and default limits. A token costs
// an RSA signature, so that the rate is compared with what the machine signs in the same run (sign-%). Figures are in
// the README.

// BenchmarkToken asks for tokens of one client over 1 and over 64 connections.
func BenchmarkToken(b *testing.B) {
	for _, connections := range []int{1, 64} {
		b.Run(fmt.Sprintf("connections=%d", connections), func(b *testing.B) {
			r := start(b, "--clients-file", clientsFile(b))
			benchmarkToken(b, r, connections)
		})
	}
}

// BenchmarkTokenUnderAttack is the same while 8 connections send wrong secrets and unknown ids as fast as they can.
func BenchmarkTokenUnderAttack(b *testing.B) {
	r := start(b, "--clients-file", clientsFile(b))
	post(b, http.DefaultClient, r.api+"/oauth2/token", demoForm, http.StatusOK) // a client whose secret is remembered
	stop := make(chan struct{})
	var attackers sync.WaitGroup
	for i := range 8 {
		attackers.Go(func() {
			hc := newClient()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				form := fmt.Sprintf("grant_type=client_credentials&client_id=demo&client_secret=guess%d-%d", i, n)
				if i%2 == 0 {
					form = fmt.Sprintf("grant_type=client_credentials&client_id=nobody%d-%d&client_secret=x", i, n)
				}
				post(b, hc, r.api+"/oauth2/token", form, 0)
			}
		})
	}
	benchmarkToken(b, r, 64)
	close(stop)
	attackers.Wait()
}

// BenchmarkJWKS reads the published keys over 64 connections.
func BenchmarkJWKS(b *testing.B) {
	r := start(b, "--clients-file", clientsFile(b))
	measure(b, 64, func(hc *http.Client) {
		resp, err := hc.Get(r.api + "/oauth2/jwks")
		if err != nil {
			b.Error(err)
			return
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			b.Errorf("%d %v", resp.StatusCode, err)
		}
	})
}

func benchmarkToken(b *testing.B, r *running, connections int) {
	b.Helper()
	limit := signRate(b)
	post(b, http.DefaultClient, r.api+"/oauth2/token", demoForm, http.StatusOK) // BCrypt once
	rate := measure(b, connections, func(hc *http.Client) {
		post(b, hc, r.api+"/oauth2/token", demoForm, http.StatusOK)
	})
	b.ReportMetric(100*rate/limit, "sign-%")
}

// signRate is how many signatures all cores make in a second.
func signRate(b *testing.B) float64 {
	b.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		b.Fatal(err)
	}
	sum := sha256.Sum256([]byte("token"))
	var made atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for time.Since(start) < time.Second {
				if _, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:]); err != nil {
					b.Error(err)
					return
				}
				made.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(made.Load()) / time.Since(start).Seconds()
}

func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
}

// post sends a form and reads the whole answer. It must have the status, unless that is 0.
func post(tb testing.TB, hc *http.Client, target, form string, status int) {
	resp, err := hc.Post(target, "application/x-www-form-urlencoded", strings.NewReader(form))
	if err != nil {
		tb.Error(err)
		return
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil || status != 0 && resp.StatusCode != status {
		tb.Errorf("%d %s %v", resp.StatusCode, body.Bytes(), err)
	}
}

// measure spreads b.N requests over connections and reports rate and latency.
func measure(b *testing.B, connections int, ask func(*http.Client)) (rate float64) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(b.N))
	took := make([][]time.Duration, connections)
	var wg sync.WaitGroup
	b.ResetTimer()
	start := time.Now()
	for i := range connections {
		wg.Go(func() {
			hc := newClient()
			defer hc.CloseIdleConnections()
			for left.Add(-1) >= 0 {
				asked := time.Now()
				ask(hc)
				took[i] = append(took[i], time.Since(asked))
			}
		})
	}
	wg.Wait()
	rate = float64(b.N) / time.Since(start).Seconds()
	b.StopTimer()
	all := slices.Concat(took...)
	slices.Sort(all)
	b.ReportMetric(rate, "req/s")
	b.ReportMetric(all[len(all)/2].Seconds()*1e3, "p50-ms")
	b.ReportMetric(all[len(all)*99/100].Seconds()*1e3, "p99-ms")
	return rate
}
