package keyring

// tick does what has become due: it reads the key files again, or makes and switches keys in memory.
func (r *Keyring) tick() error {
	if r.c.Path != "" {
		return r.reload(false)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if next, due := r.scheduled(); due {
		if err := r.generate(next); err != nil {
			return err
		}
	}
	return r.advance()
}

// Rotate makes a new key in memory, which is published now and signs after lead. With key files it only reloads them:
// they are rotated by adding a file, so that all replicas see it.
func (r *Keyring) Rotate() error {
	if r.c.Path != "" {
		return r.Reload()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if newest := r.keys[len(r.keys)-1]; newest.from.After(r.c.Now()) {
		return nil // a new key is pending already
	}
	if err := r.generate(r.c.Now().Add(r.c.lead())); err != nil {
		return err
	}
	return r.advance()
}
