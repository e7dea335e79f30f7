package maintenance

import "context"

// CompressAll compresses as a round does that begins with little room.
func (m *Maintenance) CompressAll(ctx context.Context) error {
	return m.compressWhile(ctx, 0, func() bool { return true })
}
