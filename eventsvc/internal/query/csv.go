package query

import (
	"strconv"
	"strings"
)

// EscapeFormulas puts ' before the cells that a spreadsheet would take for formulas: those that begin with =, +, -, @, a tab or a
// line break, and are no numbers. Spreadsheets show such a cell as text; other programs must remove the '.
func EscapeFormulas(rows [][]string) {
	for _, cells := range rows {
		for i, cell := range cells {
			if cell == "" || !strings.ContainsAny(cell[:1], "=+-@\t\r\n") {
				continue
			}
			if _, err := strconv.ParseFloat(cell, 64); err != nil {
				cells[i] = "'" + cell
			}
		}
	}
}
