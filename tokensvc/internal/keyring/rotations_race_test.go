//go:build race

package keyring_test

// rotations that a schedule is followed for; making RSA keys takes long under the race detector.
const rotations = 15
