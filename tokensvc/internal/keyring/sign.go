package keyring

import (
	"context"
	"encoding/base64"
	"fmt"
	"runtime"
)

// Sign returns payload as a signed token in compact form (RFC 7515 section 7.1) and the id of the key it is signed
// with.
func (r *Keyring) Sign(ctx context.Context, payload []byte) (token, kid string, err error) {
	select {
	case r.gate <- struct{}{}:
		defer func() { <-r.gate }()
	case <-ctx.Done():
		return "", "", ctx.Err()
	}
	// Without this, the Go scheduler runs the next signer in line at once each time, and requests that have arrived
	// wait to be read. Gosched puts this signer behind them.
	runtime.Gosched()
	k := r.current.Load().signing
	enc := base64.RawURLEncoding
	signatureSize := enc.EncodedLen(k.private.Size())
	buf := make([]byte, 0, len(k.header)+enc.EncodedLen(len(payload))+1+signatureSize)
	buf = append(buf, k.header...)
	buf = enc.AppendEncode(buf, payload)
	signature, err := r.signer.Sign(buf, k.private)
	if err != nil {
		return "", "", fmt.Errorf("sign token: %w", err)
	}
	buf = append(buf, '.')
	return string(enc.AppendEncode(buf, signature)), k.id, nil
}
