package bearer

// DecodeObject decodes a JSON object as it is done for every token and key set.
var DecodeObject = decodeObject

// Waiting returns how many requests wait for the first answer of the issuer.
func (k *IssuerKeys) Waiting() int { return len(k.waiters) }
