package columns

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math/bits"
	"sort"
	"sync"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store/boltfile"
)

// maxDictionary is the most bytes of a dictionary, and of its copy when it is inflated.
const maxDictionary = 64 << 20

// A dictionary is texts by code. That of a builder grows, and what there is of it never changes.
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

// add adds a text, and returns its code.
func (d *dictionary) add(text []byte) (code int) {
	d.text = append(d.text, text...)
	d.ends = append(d.ends, uint32(len(d.text)))
	return len(d.ends) - 1
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
	code := 0
	for at := 0; at <= len(d.text); {
		i := bytes.Index(d.text[at:], piece)
		if i < 0 {
			return
		}
		at += i
		step := 1 // the next one is near if there are many
		for ; code+step < len(d.ends) && int(d.ends[code+step]) <= at; step *= 2 {
			code += step
		}
		code += sort.Search(min(step, len(d.ends)-code), func(i int) bool { return int(d.ends[code+i]) > at })
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

// A finder finds the codes of a text, of which there may be several. It is a hash table with chains.
type finder struct {
	codes int
	key   func(code int) []byte
	first []uint32 // by hash: the last code, 1 beyond; as many as a power of two. Nil: all codes are compared
	next  []uint32 // by code: the one before
}

// finderSeed is random, so that nobody can choose texts that are all in one chain.
var finderSeed = maphash.MakeSeed()

// index makes the hash table.
func (f *finder) index() {
	f.first, f.next = make([]uint32, 1<<bits.Len(uint(f.codes))), make([]uint32, f.codes)
	for code := range f.codes {
		at := f.at(f.key(code))
		f.next[code], *at = *at, uint32(code)+1
	}
}

func (f *finder) at(text []byte) *uint32 {
	return &f.first[maphash.Bytes(finderSeed, text)&uint64(len(f.first)-1)]
}

// exactly returns the codes of a text.
func (f *finder) exactly(text []byte) *codeSet {
	set := &codeSet{}
	each := func(code int) {
		if !bytes.Equal(f.key(code), text) {
			return
		}
		if set.has == nil {
			set.has = make([]bool, f.codes)
		}
		set.add(code)
	}
	if f.first == nil {
		for code := range f.codes {
			each(code)
		}
		return set
	}
	for code := *f.at(text); code > 0; code = f.next[code-1] {
		each(int(code - 1))
	}
	return set
}

// A codeSet is a set of codes of a dictionary.
type codeSet struct {
	has         []bool
	n           int
	least, most int // of those in the set
}

// within reports whether there may be a code in the set from one to another.
func (s *codeSet) within(from, to uint64) bool {
	return s.n > 0 && uint64(s.least) <= to && uint64(s.most) >= from
}

// meets reports whether two sets have a code in common.
func (s *codeSet) meets(other *codeSet) bool {
	for code, is := range s.has {
		if is && other.has[code] {
			return true
		}
	}
	return false
}

func (s *codeSet) add(code int) {
	if s.has[code] {
		return
	}
	if s.n == 0 {
		s.least = code
	}
	s.least, s.most = min(s.least, code), max(s.most, code)
	s.has[code] = true
	s.n++
}

// blockTexts is how many texts of a dictionary have a checksum of their own, so that one is read without the others.
const blockTexts = 64

// What a dictionary has of each block.
const (
	blockText    = 0 // where its texts begin 4
	blockLengths = 4 // where their lengths begin 4
	blockSum     = 8 // CRC32C 4
	blockHead    = 12
)

// appendDictionary appends texts: their number 4, the heads of blocks, where texts and lengths end 4 each, the CRC32C
// of all this, the lengths (uvarints), and the texts.
func appendDictionary(dst []byte, salt uint64, d *dictionary) []byte {
	var lengths []byte
	dst = binary.BigEndian.AppendUint32(dst, uint32(d.len()))
	start := len(dst) - 4
	for first := 0; first < d.len(); first += blockTexts {
		text, length, end := d.begin(first), len(lengths), min(first+blockTexts, d.len())
		for code := first; code < end; code++ {
			lengths = binary.AppendUvarint(lengths, uint64(len(d.at(code))))
		}
		dst = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(dst, uint32(text)), uint32(length))
		dst = binary.BigEndian.AppendUint32(dst, blockChecksum(salt, lengths[length:], d.text[text:d.ends[end-1]]))
	}
	dst = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(dst, uint32(len(d.text))), uint32(len(lengths)))
	dst = binary.BigEndian.AppendUint32(dst, boltfile.Checksum(salt, dst[start:]))
	return append(append(dst, lengths...), d.text...)
}

// blockChecksum returns the checksum of a block.
func blockChecksum(salt uint64, lengths, texts []byte) uint32 {
	return boltfile.Checksum(salt^uint64(boltfile.Checksum(salt, lengths)), texts)
}

var errDictionary = fmt.Errorf("a dictionary makes no sense: %w", boltfile.ErrChecksum)

// dictionaryParts are those of a dictionary that is not read yet.
type dictionaryParts struct {
	texts   int
	heads   []byte // of the blocks, and where the last one ends
	sum     uint32
	lengths []byte
	text    []byte
}

// cutDictionary finds the parts of what appendDictionary has made. It verifies nothing but that they are there.
func cutDictionary(b []byte) (p dictionaryParts, ok bool) {
	if len(b) < 4 {
		return p, false
	}
	p.texts = int(binary.BigEndian.Uint32(b))
	size := 4 + (p.texts+blockTexts-1)/blockTexts*blockHead + blockSum
	if len(b) < size+checksumBytes {
		return p, false
	}
	p.heads, p.sum, b = b[4:size], binary.BigEndian.Uint32(b[size:]), b[size+checksumBytes:]
	text, lengths := p.ends(len(p.heads) - blockSum)
	if text > maxDictionary || lengths > len(b) || text != len(b)-lengths {
		return p, false
	}
	p.lengths, p.text = b[:lengths], b[lengths:]
	return p, true
}

func (p *dictionaryParts) ends(at int) (text, lengths int) {
	return int(binary.BigEndian.Uint32(p.heads[at+blockText:])), int(binary.BigEndian.Uint32(p.heads[at+blockLengths:]))
}

// block verifies a block, and returns the lengths of its texts, and where these begin.
func (p *dictionaryParts) block(salt uint64, block int) (lengths []byte, text int, ok bool) {
	at := block * blockHead
	text, length := p.ends(at)
	textEnd, lengthEnd := p.ends(at + blockHead)
	if text > textEnd || textEnd > len(p.text) || length > lengthEnd || lengthEnd > len(p.lengths) {
		return nil, 0, false
	}
	lengths = p.lengths[length:lengthEnd]
	return lengths, text, binary.BigEndian.Uint32(p.heads[at+blockSum:]) == blockChecksum(salt, lengths, p.text[text:textEnd])
}

// textIn returns the text of a code of what appendDictionary has made. It reads one block.
func textIn(salt uint64, b []byte, code uint64) ([]byte, error) {
	p, ok := cutDictionary(b)
	if !ok || code >= uint64(p.texts) {
		return nil, errDictionary
	}
	lengths, at, ok := p.block(salt, int(code/blockTexts))
	if !ok {
		return nil, errDictionary
	}
	for left := code % blockTexts; ; left-- {
		length, n := binary.Uvarint(lengths)
		if n <= 0 || length > uint64(len(p.text)-at) {
			return nil, errDictionary
		}
		if left == 0 {
			return p.text[at : at+int(length)], nil
		}
		lengths, at = lengths[n:], at+int(length)
	}
}

// parseDictionary reads what appendDictionary has made.
func parseDictionary(salt uint64, b []byte) (*dictionary, error) {
	p, ok := cutDictionary(b)
	if !ok || p.sum != boltfile.Checksum(salt, b[:4+len(p.heads)]) {
		return nil, errDictionary
	}
	d := &dictionary{text: p.text, ends: make([]uint32, 0, p.texts)}
	for block := range (p.texts + blockTexts - 1) / blockTexts {
		lengths, end, ok := p.block(salt, block)
		if !ok {
			return nil, errDictionary
		}
		for range min(blockTexts, p.texts-block*blockTexts) {
			length, n := binary.Uvarint(lengths)
			if n <= 0 || length > uint64(len(p.text)-end) {
				return nil, errDictionary
			}
			end, lengths = end+int(length), lengths[n:]
			d.ends = append(d.ends, uint32(end))
		}
		if text, _ := p.ends((block + 1) * blockHead); len(lengths) > 0 || end != text {
			return nil, errDictionary
		}
	}
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
