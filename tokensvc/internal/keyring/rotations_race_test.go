//go:build race

package keyring_test

// rotations is how many rotations TestRotation follows: few, because making RSA keys takes long under the race detector.
const rotations = 15
