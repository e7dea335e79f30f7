package httpio

import (
	"unicode/utf8"

	"github.com/labstack/echo/v4"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// kube-apiserver's bounds of warnings: of all texts together, and then of each.
const (
	maxWarnings = 4096
	maxWarning  = 256
)

// Warn adds Warning headers, each text once. An empty text is none.
func Warn(c echo.Context, warnings []string) {
	total := 0
	for _, text := range warnings {
		total += utf8.RuneCountInString(text)
	}
	if total == 0 {
		return
	}
	seen := map[string]bool{"": true}
	written := 0
	for _, text := range warnings {
		if seen[text] {
			continue
		}
		seen[text] = true
		if runes := []rune(text); total > maxWarnings && len(runes) > maxWarning {
			text = string(runes[:maxWarning])
		}
		if written += utf8.RuneCountInString(text); written > maxWarnings {
			return
		}
		if header, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
			c.Response().Header().Add("Warning", header)
		}
	}
}
