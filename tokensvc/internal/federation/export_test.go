package federation

// Reload reads the file of trusted issuers at once.
func (f *Federation) Reload() { f.live.Reload() }
