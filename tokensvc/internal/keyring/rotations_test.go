//go:build !race

package keyring_test

// rotations that a schedule is followed for.
const rotations = 100
