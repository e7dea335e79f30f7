package boltfile

import (
	"errors"
	"hash/crc32"
)

// ErrChecksum reports an entry whose checksum does not match.
var ErrChecksum = errors.New("checksum mismatch")

// Castagnoli is the table of the CRC32C.
var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the CRC32C of a number, big-endian, and bytes that are stored under
// it. The number goes in byte by byte: a slice of it for crc32.Update would be allocated
// for every record that is read.
func Checksum(number uint64, b []byte) uint32 {
	crc := ^uint32(0)
	for shift := 56; shift >= 0; shift -= 8 {
		crc = Castagnoli[byte(crc)^byte(number>>shift)] ^ crc>>8
	}
	return crc32.Update(^crc, Castagnoli, b)
}
