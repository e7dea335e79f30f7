package query_test

import (
	"testing"

	"tidings.example/eventsvc/internal/query"
)

func TestEscapeFormulas(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{
		"": "", "plain": "plain", "a=1": "a=1", " =1": " =1", "'=1": "'=1", "12": "12", "-12": "-12", "+1.5": "+1.5", "-1e3": "-1e3",
		"=HYPERLINK(\"http://evil.example\")": "'=HYPERLINK(\"http://evil.example\")",
		"=":                                   "'=", "+A1": "'+A1", "-1+cmd|' /C calc'!A0": "'-1+cmd|' /C calc'!A0", "-": "'-", "@SUM(A1)": "'@SUM(A1)",
		"\t=1": "'\t'=1", "\r=1": "'\r'=1", "\n=1": "'\n'=1", "\ta": "'\ta", "＝1+1": "'＝1+1", "＠SUM(A1)": "'＠SUM(A1)",
		// Where a spreadsheet separates cells by semicolons or tabs.
		"a;=1": "a;'=1", "a;b": "a;b", "a; =1": "a; =1", "x\n=1": "x\n'=1", "x\t@A": "x\t'@A", "a,=1": "a,=1", ";;-1": ";;'-1", "a\n\nb": "a\n\nb",
	} {
		row := []string{"first", cell}
		if query.EscapeFormulas([][]string{row}); row[0] != "first" || row[1] != want {
			t.Errorf("%q: %q, want %q", cell, row[1], want)
		}
	}
}
