package audit_test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/audit"
)

// TestAuditPage: the page about the audit log lists the members of an entry, and no others.
func TestAuditPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../deploy/docs/how-to/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## The members of an entry\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?`) \\| ").FindAllStringSubmatch(section, -1) {
		for name := range strings.SplitSeq(row[1], ", ") {
			listed = append(listed, strings.Trim(name, "`"))
		}
	}
	var members []string
	for field := range reflect.TypeFor[audit.Entry]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		members = append(members, name)
	}
	slices.Sort(listed)
	slices.Sort(members)
	if diff := cmp.Diff(members, listed); diff != "" {
		t.Errorf("members (-written +listed):\n%s", diff)
	}
}
