package columns

import (
	"bytes"
	"encoding/binary"
	"errors"
	"sort"
	"sync"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store/boltfile"
)

// maxDictionary is the most bytes of a dictionary, and of its copy when it is inflated.
const maxDictionary = 64 << 20

// A dictionary is texts by code. It is never changed.
type dictionary struct {
	text []byte
	ends []uint32
}

func (d *dictionary) len() int { return len(d.ends) }

func (d *dictionary) begin(code int) int {
	if code == 0 {
		return 0
	}
	return int(d.ends[code-1])
}

// at returns the text of a code.
func (d *dictionary) at(code int) []byte { return d.text[d.begin(code):d.ends[code]] }

// folded returns the dictionary with each text folded ([event.Fold]).
func (d *dictionary) folded() *dictionary {
	f := &dictionary{text: make([]byte, 0, len(d.text)), ends: d.ends}
	if f.text = event.Fold(f.text, d.text); isASCII(d.text) {
		return f
	}
	f.text, f.ends = f.text[:0], make([]uint32, len(d.ends))
	for code := range d.ends {
		f.text = event.Fold(f.text, d.at(code))
		f.ends[code] = uint32(len(f.text))
	}
	return f
}

func isASCII(text []byte) bool {
	for _, c := range text {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// having calls found with each code whose text contains a piece.
func (d *dictionary) having(piece []byte, found func(code int)) {
	for at := 0; at <= len(d.text); {
		i := bytes.Index(d.text[at:], piece)
		if i < 0 {
			return
		}
		at += i
		code := sort.Search(len(d.ends), func(i int) bool { return int(d.ends[i]) > at })
		if code == len(d.ends) {
			return
		}
		if at+len(piece) <= int(d.ends[code]) {
			found(code)
			at = int(d.ends[code])
		} else {
			at++ // it begins in one text and ends in another
		}
	}
}

// fitting returns which codes have texts that fit.
func (d *dictionary) fitting(fits func(text string) bool) *codeSet {
	set := &codeSet{has: make([]bool, len(d.ends))}
	for code := range d.ends {
		if fits(string(d.at(code))) {
			set.add(code)
		}
	}
	return set
}

// exactly returns the code of the only text that is the same as another one.
func (d *dictionary) exactly(text string) *codeSet {
	set := &codeSet{has: make([]bool, len(d.ends))}
	d.having([]byte(text), func(code int) {
		if len(d.at(code)) == len(text) {
			set.add(code)
		}
	})
	return set
}

// A codeSet is a set of codes of a dictionary.
type codeSet struct {
	has []bool
	n   int
}

func (s *codeSet) add(code int) {
	if !s.has[code] {
		s.has[code] = true
		s.n++
	}
}

// appendDictionary appends texts: their number, the length of each (uvarints), and the texts.
func appendDictionary(dst []byte, texts []string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(texts)))
	for _, t := range texts {
		dst = binary.AppendUvarint(dst, uint64(len(t)))
	}
	for _, t := range texts {
		dst = append(dst, t...)
	}
	return dst
}

var errDictionary = errors.New("a dictionary makes no sense")

// parseDictionary reads what appendDictionary has made.
func parseDictionary(b []byte) (*dictionary, error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)) {
		return nil, errDictionary
	}
	d := &dictionary{ends: make([]uint32, n)}
	b = b[size:]
	end := uint64(0)
	for i := range d.ends {
		length, size := uint64(0), 1
		if len(b) > 0 && b[0] < 0x80 {
			length = uint64(b[0])
		} else if length, size = binary.Uvarint(b); size <= 0 {
			return nil, errDictionary
		}
		if end += length; length > maxDictionary || end > maxDictionary {
			return nil, errDictionary
		}
		d.ends[i], b = uint32(end), b[size:]
	}
	if end != uint64(len(b)) {
		return nil, errDictionary
	}
	d.text = b
	return d, nil
}

// The encoder and the decoder of the copies of dictionaries.
var (
	copyEncoder = sync.OnceValues(func() (*zstd.Encoder, error) {
		return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithSingleSegment(true), zstd.WithLowerEncoderMem(true))
	})
	copyDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxDictionary), zstd.WithDecoderLowmem(true))
	})
)

// seal appends the checksum of a piece.
func seal(salt uint64, piece []byte) []byte {
	return binary.BigEndian.AppendUint32(piece, boltfile.Checksum(salt, piece))
}

// unseal verifies the checksum of a piece, and takes it away.
func unseal(salt uint64, piece []byte) ([]byte, error) {
	n := len(piece) - checksumBytes
	if n < 0 || binary.BigEndian.Uint32(piece[n:]) != boltfile.Checksum(salt, piece[:n]) {
		return nil, boltfile.ErrChecksum
	}
	return piece[:n], nil
}

// deflate returns content as a frame, and inflate reads it again.
func deflate(content []byte) ([]byte, error) {
	e, err := copyEncoder()
	if err != nil {
		return nil, err
	}
	return e.EncodeAll(content, nil), nil
}

func inflate(frame []byte) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(frame); err != nil || !h.HasFCS || h.FrameContentSize > maxDictionary {
		return nil, errDictionary
	}
	d, err := copyDecoder()
	if err != nil {
		return nil, err
	}
	return d.DecodeAll(frame, nil)
}
