// Package loglines has the test of the page of log lines. It finds every message in the code of both services.
package loglines
