// Package boltcheck keeps damaged bbolt files from harming the process that reads
// them.
//
// [Pages] checks the page structure of a file before bbolt follows it. [Guard] and
// [View] turn what bbolt does on a damaged page while it is read, a panic or a
// fault, into an error. Both are needed: Guard cannot stop an endless recursion, and
// Pages cannot foresee damage that comes later.
//
// [Prefetch] uses the same knowledge of pages to have the kernel read many leaves at the
// same time.
//
// All functions are safe for concurrent use. The package knows bbolt's page format
// and nothing of what a file holds.
package boltcheck
