package fields

// The library's way, which the fast paths must equal.
var (
	TrackFully = (*Tracker).trackFully
	TrackPlain = (*Tracker).trackPlain
)
