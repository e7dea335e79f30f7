package postgres

import (
	"sync"

	"tidings.example/tokensvc/internal/client"
	"tidings.example/tokensvc/internal/clientkey"
)

// maxParsed is how many texts of keys are remembered: about 4 MiB.
const maxParsed = 1 << 12

// parsedKeys remembers the keys of rows by their text. Otherwise a registered client with keys would be answered
// measurably later than an unknown one, because reading keys takes as long as verifying a signature.
type parsedKeys struct {
	mu   sync.Mutex
	keys map[[2]string][]clientkey.Public
}

// of returns the keys in the columns jwks and public_keys.
func (p *parsedKeys) of(jwks, publicKeys string) ([]clientkey.Public, error) {
	if jwks == "" && publicKeys == "" {
		return nil, nil
	}
	text := [2]string{jwks, publicKeys}
	p.mu.Lock()
	defer p.mu.Unlock()
	if keys, ok := p.keys[text]; ok {
		return keys, nil
	}
	keys, err := client.ParseKeys([]byte(jwks), []byte(publicKeys))
	if err != nil {
		return nil, err
	}
	if p.keys == nil || len(p.keys) >= maxParsed {
		p.keys = map[[2]string][]clientkey.Public{}
	}
	p.keys[text] = keys
	return keys, nil
}
