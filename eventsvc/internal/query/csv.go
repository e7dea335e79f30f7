package query

import (
	"strconv"
	"strings"
)

const (
	formulas   = "=+-@＝＋－＠" // what a formula begins with; spreadsheets of some languages take the wide forms, too
	lineBreaks = "\t\r\n"   // some spreadsheets drop those at the begin of a cell
)

// EscapeFormulas puts ' before what a spreadsheet would take for a formula: a cell that begins with =, +, -, @, a tab
// or a line break, and is no number. It does the same behind a semicolon, a tab or a line break in a cell, because a
// spreadsheet that separates cells by those begins another one there. Spreadsheets show the cell as text; other
// programs must remove the '.
func EscapeFormulas(rows [][]string) {
	for _, cells := range rows {
		for i, cell := range cells {
			if _, err := strconv.ParseFloat(cell, 64); err != nil {
				cells[i] = escapeFormulas(cell)
			}
		}
	}
}

func escapeFormulas(cell string) string {
	if !strings.ContainsAny(cell, formulas+lineBreaks) {
		return cell
	}
	var b strings.Builder
	begins := formulas + lineBreaks
	for _, r := range cell {
		if strings.ContainsRune(begins, r) {
			b.WriteByte('\'')
		}
		b.WriteRune(r)
		if begins = ""; strings.ContainsRune(";"+lineBreaks, r) {
			begins = formulas
		}
	}
	return b.String()
}
