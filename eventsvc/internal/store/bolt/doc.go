// Package bolt is the engine of package store on bbolt files.
package bolt
