package request

// The library's way, which the fast paths must equal.
var (
	DecodeFully = (*Decoder).decodeFully
	DecodePlain = (*Decoder).decodePlain
	PatchFully  = (*Decoder).patchFully
	PatchPlain  = (*Decoder).patchPlain
)

// Piece is how many bytes of a body are looked at without a break.
const Piece = piece
