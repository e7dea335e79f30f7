// Package answers has the test of the page of errors. It finds every answer with an error in the code of both services.
package answers
