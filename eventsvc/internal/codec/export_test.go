package codec

// The library's way, which the fast paths must equal.
var (
	DecodeFully = (*Codec).decodeFully
	DecodePlain = (*Codec).decodePlain
	PatchFully  = (*Codec).patchFully
	PatchPlain  = (*Codec).patchPlain
	TrackFully  = (*Codec).trackFully
	TrackPlain  = (*Codec).trackPlain
)
