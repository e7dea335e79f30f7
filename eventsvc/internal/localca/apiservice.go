package localca

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"tidings.example/eventsvc/internal/client"
)

const (
	lookEvery      = time.Minute // whether the APIService still has the authority
	maxAuthorities = 16          // in a caBundle: of all replicas, and of some that are gone
)

// APIService is the registration of an aggregated API whose server makes its own certificate. Each replica has an
// authority of its own, whose key never leaves it, and puts it beside the others into the caBundle.
type APIService struct {
	Name  string
	Dir   string   // of [TLSConfig]
	Hosts []string // SERVICE.NAMESPACE.svc
	API   *client.Client
	Log   *slog.Logger

	config  atomic.Pointer[tls.Config]
	renewed time.Time
}

// TLSConfig returns a TLS configuration whose certificate [APIService.Run] renews.
func (a *APIService) TLSConfig() (*tls.Config, error) {
	first, err := a.renew(time.Now())
	if err != nil {
		return nil, err
	}
	renewing := first.Clone()
	renewing.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		return a.config.Load().GetCertificate(hello)
	}
	return renewing, nil
}

// renew replaces the certificate if it is time.
func (a *APIService) renew(now time.Time) (*tls.Config, error) {
	config, err := TLSConfig(a.Dir, a.Hosts, now)
	if err == nil {
		a.config.Store(config)
		a.renewed = now
	}
	return config, err
}

// keep looks once a day whether the certificate is to be renewed, and each time whether the APIService has the
// authority.
func (a *APIService) keep(ctx context.Context, now time.Time) error {
	if now.Sub(a.renewed) > renewBefore/30 {
		if _, err := a.renew(now); err != nil {
			return err
		}
	}
	return a.register(ctx)
}

// Run keeps the authority in the caBundle, and the certificate valid, until ctx ends. The account needs get and update
// of this APIService alone.
func (a *APIService) Run(ctx context.Context) error {
	var last error // the one logged last
	for {
		err := a.keep(ctx, time.Now())
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && last == nil {
			a.Log.WarnContext(ctx, "the certificate authority is not in the APIService, so kube-apiserver does not trust this process", "apiservice", a.Name, "error", err)
		}
		if err == nil && last != nil {
			a.Log.InfoContext(ctx, "the certificate authority is in the APIService", "apiservice", a.Name)
		}
		pause := lookEvery
		if last = err; err != nil {
			pause = time.Second
		}
		if client.Sleep(ctx, pause) != nil {
			return nil
		}
	}
}

// register adds the authority to the caBundle, unless it is there.
func (a *APIService) register(ctx context.Context) error {
	own, err := os.ReadFile(filepath.Join(a.Dir, caCertFile))
	if err != nil {
		return err
	}
	path := "/apis/apiregistration.k8s.io/v1/apiservices/" + url.PathEscape(a.Name)
	var object struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
		Spec       map[string]any `json:"spec"`
	}
	if err := a.API.Do(ctx, client.Request{Path: path}, &object); err != nil {
		return err
	}
	text, _ := object.Spec["caBundle"].(string)
	before, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		before = nil // kube-apiserver takes no other
	}
	if bytes.Contains(before, bytes.TrimSpace(own)) {
		return nil
	}
	object.Spec["caBundle"] = base64.StdEncoding.EncodeToString(append(newest(before, time.Now()), own...))
	return a.API.Do(ctx, client.Request{Method: http.MethodPut, Path: path, Query: url.Values{"fieldManager": {"eventsvc-aggregate"}}, Body: object}, nil)
}

// newest returns the authorities of a bundle that are valid, without the oldest if there are too many for another one.
func newest(bundle []byte, now time.Time) []byte {
	var all []*x509.Certificate
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && now.Before(c.NotAfter) {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b *x509.Certificate) int { return a.NotBefore.Compare(b.NotBefore) })
	var kept []byte
	for _, c := range all[max(0, len(all)-maxAuthorities+1):] {
		kept = append(kept, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return kept
}
