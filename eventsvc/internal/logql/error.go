package logql

import "fmt"

// Error says what is wrong with an expression, and where.
type Error struct {
	Line, Col int // counted from one; 0: the expression as a whole
	Message   string
}

// Error returns the text that Loki would answer with.
func (e *Error) Error() string {
	if e.Line == 0 {
		return "parse error : " + e.Message
	}
	return fmt.Sprintf("parse error at line %d, col %d: %s", e.Line, e.Col, e.Message)
}
