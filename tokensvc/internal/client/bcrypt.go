package client

import (
	"crypto/subtle"
	"encoding/base64"
	"runtime"
	"strconv"

	"golang.org/x/crypto/blowfish" //nolint:staticcheck // deprecated for new uses; BCrypt is made of it
)

// bcryptMatches reports whether a well-formed hash is that of the secret, as CompareHashAndPassword of
// golang.org/x/crypto/bcrypt does, with which the tests compare it. That one keeps a core for the 50 ms of a compare and
// more: requests that the scheduler has put behind it would wait for their tokens. This one steps aside again and again.
func bcryptMatches(hash, secret string) bool {
	cost, _ := strconv.Atoi(hash[4:6])
	salt, err := bcryptEncoding.DecodeString(hash[7:29])
	if err != nil {
		return false
	}
	key := append([]byte(secret), 0)
	c, err := blowfish.NewSaltedCipher(key, salt)
	if err != nil {
		return false
	}
	for round := range 1 << cost {
		blowfish.ExpandKey(key, c)
		blowfish.ExpandKey(salt, c)
		if round%roundsAtOnce == 0 {
			runtime.Gosched()
		}
	}
	text := []byte("OrpheanBeholderScryDoubt")
	for block := 0; block < len(text); block += blowfish.BlockSize {
		for range 64 {
			c.Encrypt(text[block:], text[block:])
		}
	}
	digest := bcryptEncoding.EncodeToString(text[:23]) // the last byte never was part of it
	return subtle.ConstantTimeCompare([]byte(digest), []byte(hash[29:])) == 1
}

// roundsAtOnce takes about 3 ms.
const roundsAtOnce = 64

var bcryptEncoding = base64.NewEncoding(bcryptAlphabet).WithPadding(base64.NoPadding)
