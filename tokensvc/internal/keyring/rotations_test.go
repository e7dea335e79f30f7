//go:build !race

package keyring_test

// rotations is how many rotations TestRotation follows.
const rotations = 100
