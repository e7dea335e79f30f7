package codec

// The library's way, which the fast paths must equal.
var (
	PatchFully = (*Codec).patchFully
	PatchPlain = (*Codec).patchPlain
	TrackFully = (*Codec).trackFully
	TrackPlain = (*Codec).trackPlain
)
