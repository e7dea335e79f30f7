// Package target starts what is measured: tokensvc, eventsvc and, for some rows,
// PostgreSQL. It formats the requests for them and checks their answers.
package target
