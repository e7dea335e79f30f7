// Package trustfile makes HTTP transports that trust the certificate authorities in a file, as it is now.
//
// Authorities are renewed while services run: the kubelet, for one, replaces the file with a cluster's authorities. A
// [Transport] looks at its file before each request. If the file has changed, new connections are verified with its
// present authorities, and idle ones are closed; a request in flight, such as a watch, goes on. A file that cannot be
// read, or has no certificate, changes nothing: new connections are verified as before.
package trustfile

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"sync"
)

// Transport is an [http.RoundTripper]. It is safe for concurrent use.
type Transport struct {
	like *http.Transport
	file string

	mu  sync.Mutex
	is  os.FileInfo // the version of the file that was read last
	now *http.Transport
}

// New returns a transport like the given one, which trusts the authorities of a PEM file.
func New(like *http.Transport, file string) (*Transport, error) {
	t := &Transport{like: like, file: file}
	is, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	return t, t.read(is)
}

// read makes the transport for the authorities that the file has now.
func (t *Transport) read(is os.FileInfo) error {
	pem, err := os.ReadFile(t.file)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s holds no certificate in PEM", t.file)
	}
	next := t.like.Clone()
	if next.TLSClientConfig == nil {
		next.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	next.TLSClientConfig.RootCAs = roots
	if t.now != nil {
		t.now.CloseIdleConnections()
	}
	t.is, t.now = is, next
	return nil
}

// current returns the transport for the file as it is.
func (t *Transport) current() *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	is, err := os.Stat(t.file)
	if err == nil && (!os.SameFile(is, t.is) || !is.ModTime().Equal(t.is.ModTime()) || is.Size() != t.is.Size()) {
		_ = t.read(is) // a bad file changes nothing, and is read again
	}
	return t.now
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.current().RoundTrip(r)
}

// CloseIdleConnections is called by [http.Client.CloseIdleConnections].
func (t *Transport) CloseIdleConnections() { t.current().CloseIdleConnections() }
