// Package clientkey has the keys by which clients authenticate without a secret, by private_key_jwt (RFC 7523 section
// 2.2, OpenID Connect Core section 9): the public keys of a registration, and on the client's side the private key and
// the assertions that it signs.
package clientkey
