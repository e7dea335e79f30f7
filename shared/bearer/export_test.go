package bearer

// Waiting returns how many requests wait for the first answer of the issuer.
func (k *IssuerKeys) Waiting() int { return len(k.waiters) }
