package boltfile

import (
	"bytes"
	"context"

	"go.etcd.io/bbolt"
)

// FillPercent is how full pages of entries are made that come in order of their keys.
const FillPercent = 0.95

// copyEntries is how many entries CopyBucket copies in one transaction.
const copyEntries = 16384

// CopyBucket copies a bucket in transactions of bounded size. Unless it is nil, edit
// changes the entries on the way. Entries whose value it returns empty are left out.
func CopyBucket(ctx context.Context, from *bbolt.Tx, to *bbolt.DB, name string, edit func(k, v []byte) ([]byte, []byte, error)) error {
	c := from.Bucket([]byte(name)).Cursor()
	k, v := c.First()
	for k != nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := to.Update(func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte(name))
			b.FillPercent = FillPercent
			for n := 0; n < copyEntries && k != nil; n++ {
				key, value := bytes.Clone(k), bytes.Clone(v)
				if edit != nil {
					var err error
					if key, value, err = edit(key, value); err != nil {
						return err
					}
				}
				if len(value) > 0 {
					if err := b.Put(key, value); err != nil {
						return err
					}
				}
				k, v = c.Next()
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
