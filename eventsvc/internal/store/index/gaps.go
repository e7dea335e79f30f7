package index

import (
	"encoding/binary"
	"math/bits"
)

// The gaps between the revisions of a long run are written in an exponential Golomb code, whose order follows from
// their mean. A frequent term has small gaps: a gap of a term that nearly all versions have takes two bits, where a
// varint takes eight.
//
//	order 1, then for each gap g - 1 = v, from the highest bit of a byte on
//	as many zeros as v >> order + 1 has bits, less one | v >> order + 1 | the lowest bits of v, as many as the order says

// maxOrder bounds the order.
const maxOrder = 32

// appendGaps appends the gaps between ascending revisions.
func appendGaps(dst []byte, revisions []uint64) []byte {
	n := uint64(len(revisions) - 1)
	order := min(bits.Len64((revisions[n]-revisions[0])/n)-1, maxOrder)
	w := bitWriter{bytes: append(dst, byte(order))}
	for i, r := range revisions[1:] {
		v := r - revisions[i] - 1
		high := v>>order + 1
		w.write(0, bits.Len64(high)-1)
		w.write(high, bits.Len64(high))
		w.write(v, order)
	}
	return w.end()
}

// A bitWriter appends bits to bytes.
type bitWriter struct {
	bytes []byte
	last  uint64 // bits that make no byte yet
	n     int    // number of these
}

// write writes the lowest bits of v.
func (w *bitWriter) write(v uint64, count int) {
	for count > 0 {
		some := min(count, 8-w.n)
		count -= some
		w.last = w.last<<some | v>>count&(1<<some-1)
		if w.n += some; w.n == 8 {
			w.bytes = append(w.bytes, byte(w.last))
			w.last, w.n = 0, 0
		}
	}
}

// end fills the last byte with zeros.
func (w *bitWriter) end() []byte {
	if w.n > 0 {
		w.write(0, 8-w.n)
	}
	return w.bytes
}

// readGaps appends up to n revisions that follow a given one.
func readGaps(dst []uint64, last, n uint64, gaps []byte) []uint64 {
	if len(gaps) == 0 || gaps[0] > maxOrder {
		return dst
	}
	order := int(gaps[0])
	r := bitReader{bytes: gaps[1:]}
	for range n {
		zeros := bits.LeadingZeros64(r.peek())
		if zeros+1+zeros+order > 64 { // of bits, it takes two looks
			r.at += zeros
			zeros = min(zeros, 63)
			high := r.take(zeros + 1)
			last += (high-1)<<order + r.take(order) + 1
		} else {
			r.at += zeros
			code := r.take(1 + zeros + order)
			last += code - 1<<order + 1
		}
		if r.at > 8*len(r.bytes) {
			return dst
		}
		dst = append(dst, last)
	}
	return dst
}

// A bitReader reads bits of bytes. Behind them there are zeros.
type bitReader struct {
	bytes []byte
	at    int
}

// peek returns the next bits, at least 57 of them, from the highest one on.
func (r *bitReader) peek() uint64 {
	if i := r.at / 8; i+8 <= len(r.bytes) {
		return binary.BigEndian.Uint64(r.bytes[i:]) << (r.at % 8)
	}
	var b [8]byte
	copy(b[:], r.bytes[min(r.at/8, len(r.bytes)):])
	return binary.BigEndian.Uint64(b[:]) << (r.at % 8)
}

// take reads up to 64 bits.
func (r *bitReader) take(n int) (v uint64) {
	for n > 0 {
		some := min(n, 32)
		v = v<<some | r.peek()>>(64-some)
		r.at += some
		n -= some
	}
	return v
}
