package console_test

import (
	"bufio"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestOpenedDump: the console of a dump needs no sign-in, begins at the time of the dump, and forgets its token's
// address.
func TestOpenedDump(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	cmd := exec.CommandContext(t.Context(), s.programs["eventsvc"].path, "open", "../../../eventsvc/internal/dump/testdata/dumps/bundle.tgz")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() })
	url := ""
	for lines := bufio.NewScanner(out); url == "" && lines.Scan(); {
		url = regexp.MustCompile(`http\S+/console/\S+|$`).FindString(lines.Text())
	}
	b := openTab(t, s)
	b.do(chromedp.Navigate(url))
	b.wait(`document.readyState === "complete"`)
	b.waitText("main", "BackOff")
	if at := evaluate[string](b, `location.href`); strings.Contains(at, "token") {
		t.Errorf("the address is %s", at)
	}
	if b.count("dialog[open]") > 0 {
		t.Error("it asks for a token")
	}
	show(b, "events")
	b.waitText("main [data-row]", "Basket")
	if rows := b.count("main [data-row]"); rows != 8 {
		t.Errorf("%d rows of 8 events", rows)
	}
}
