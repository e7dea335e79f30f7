// Package objectchange says in words what has changed in an object of a cluster:
// "spec.template.spec.containers[web].image: 1.4.2 → 1.5.0; replicas: 3 → 5; by argocd-controller".
//
// [Read] turns an object into [Seen]: its fields as paths and values, without what only controllers count. [Compare]
// lists the fields that differ, [Created], [Changed] and [Deleted] are the notes. [State] keeps what was seen on the
// disk.
//
// The files: read.go has what is compared, secret.go what is never shown, compare.go what differs and who made a
// change, note.go the words, state.go the file.
//
// # Secrets
//
// Values of Secrets and ConfigMaps, and values that are secrets by their name or form (secret.go), are hidden: neither
// a note nor the file has them, or anything that is computed from them. That such a value has changed is known by a
// hash whose key is random and never leaves the process. So a process that has just started knows only that a manager
// wrote such fields.
package objectchange
