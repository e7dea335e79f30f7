package bearer

import (
	"log/slog"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// WithAlgorithms returns the keys of the same source for other algorithms. It takes over what was fetched last, so that
// tokens are verified without another fetch. The source must not be a file.
func (k *IssuerKeys) WithAlgorithms(algorithms []string) (*IssuerKeys, error) {
	next := newIssuerKeys(k.issuer, k.config)
	next.config.Algorithms = algorithms
	old := k.jwks()
	if old == nil {
		return next, checkAlgorithms(algorithms)
	}
	if err := next.useURL(old.URL); err != nil {
		return nil, err
	}
	next.jwks().inherit(old)
	return next, nil
}

// jwks returns the key set, or nil if it is a file or not found yet.
func (k *IssuerKeys) jwks() *JWKS {
	if found := k.found.Load(); found != nil {
		set, _ := (*found).(*JWKS)
		return set
	}
	return nil
}

// inherit takes over the document that another JWKS has fetched, and the time of its last fetch. If the document has no
// key for the algorithms of k, it is fetched again.
func (k *JWKS) inherit(from *JWKS) {
	from.mu.Lock()
	k.tried = from.tried
	from.mu.Unlock()
	set := from.current.Load()
	if set == nil {
		return
	}
	// The next fetch tells which entries are skipped.
	if keys, err := parseKeys(set.document, k.Algorithms, slog.New(slog.DiscardHandler)); err == nil {
		k.current.Store(&keySet{keys: keys, document: set.document, fetched: set.fetched, maxAge: set.maxAge})
	}
}

// Retire closes the connections and removes the metrics of an issuer that is no longer trusted. The caller waits until
// Run has returned. The metrics stay if the keys of one of the others are fetched from the same URL.
func (k *IssuerKeys) Retire(others []*IssuerKeys) {
	if k.config.Client != nil { // otherwise the connections are those of the whole process
		k.config.Client.CloseIdleConnections()
	}
	if set := k.jwks(); set != nil {
		set.retire(slices.ContainsFunc(others, func(o *IssuerKeys) bool {
			other := o.jwks()
			return other != nil && other.URL == set.URL
		}))
	}
}

// retire stops counting, also the fetch for a request that is still under way. It removes the metrics unless they are
// shared.
func (k *JWKS) retire(shared bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.retired = true
	if !shared {
		k.fetches.DeletePartialMatch(prometheus.Labels{"url": k.URL})
		k.newest.DeleteLabelValues(k.URL)
	}
}

// count counts the result of a fetch.
func (k *JWKS) count(result string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.retired {
		return
	}
	k.fetches.WithLabelValues(k.URL, result).Inc()
	if result == "ok" {
		k.newest.WithLabelValues(k.URL).Set(float64(k.Now().Unix()))
	}
}
