package console_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"tidings.example/deploy/test/internal/testenv"
)

// browser returns the context of the one browser, started when the first test asks.
func browser(t testing.TB) context.Context {
	t.Helper()
	ctx, err := startBrowser()
	switch {
	case ctx == nil && err == nil:
		testenv.Unable(t, "no browser: install chromium to run this test")
	case err != nil:
		t.Fatal(err)
	}
	return ctx
}

// startBrowser returns nothing if there is no browser on this machine.
var startBrowser = sync.OnceValues(func() (context.Context, error) {
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		return nil, nil
	}
	alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), slices.Concat(chromedp.DefaultExecAllocatorOptions[:], []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.UserDataDir(filepath.Join(temp, "browser")), chromedp.WindowSize(1280, 800),
		chromedp.Flag("lang", "en-US"), chromedp.Flag("font-render-hinting", "none"), chromedp.Flag("force-device-scale-factor", "1"),
		chromedp.Flag("enable-precise-memory-info", true),
	})...)
	ctx, stop := chromedp.NewContext(alloc)
	last = append(last, func() { stop(); stopAlloc() })
	return ctx, chromedp.Do(ctx)
})

// tab is a page in a profile of its own. Its methods fail the test when what they wait for does not come.
type tab struct {
	t        testing.TB
	services *services
	ctx      context.Context

	mu       sync.Mutex
	problems []string            // what the page should not have done
	expected []*regexp.Regexp    // problems that the test makes
	under    map[string]underWay // requests, by id
}

// underWay is a request that has not ended.
type underWay struct {
	url    string
	loader string // of the document that wants it
}

// openTab opens an empty tab of 1280 × 800 pixels with light colours, without motion, in UTC.
func openTab(t testing.TB, s *services) *tab {
	t.Helper()
	return open(browser(t), t, s, chromedp.WithNewBrowserContext())
}

// beside opens another tab in the same profile.
func (b *tab) beside() *tab {
	b.t.Helper()
	return open(b.ctx, b.t, b.services)
}

func open(parent context.Context, t testing.TB, s *services, options ...chromedp.ContextOption) *tab {
	t.Helper()
	b := &tab{t: t, services: s, under: map[string]underWay{}}
	ctx, closeTab := chromedp.NewContext(parent, append(options, chromedp.WithListener(b.hear))...)
	b.ctx = ctx
	if err := chromedp.Do(ctx); err != nil { // opens the tab, which lives as long as this context
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			b.shot("failed-" + strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()))
		}
		closeTab()
		b.report()
	})
	b.size(1280, 800)
	b.dark(false)
	call(b, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}) // several tabs are looked at at once
	call(b, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "UTC"})
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: aiming})
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `addEventListener("securitypolicyviolation", (e) => console.error("policy violated:", e.violatedDirective, e.blockedURI, e.sample))`,
	})
	return b
}

// hear records what the page does.
func (b *tab) hear(ev any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch ev := ev.(type) {
	case *runtime.EventExceptionThrown:
		text := ev.ExceptionDetails.Text
		if ev.ExceptionDetails.Exception != nil {
			text += " " + ev.ExceptionDetails.Exception.Description
		}
		b.problems = append(b.problems, "exception: "+text)
	case *runtime.EventConsoleAPICalled:
		if ev.Type == runtime.ConsoleAPICalledTypeError || ev.Type == runtime.ConsoleAPICalledTypeAssert || ev.Type == runtime.ConsoleAPICalledTypeWarning {
			var texts []string
			for _, arg := range ev.Args {
				texts = append(texts, cmp.Or(arg.Description, string(arg.Value)))
			}
			b.problems = append(b.problems, fmt.Sprintf("console %s: %s", ev.Type, strings.Join(texts, " ")))
		}
	case *log.EventEntryAdded:
		if ev.Entry.Level == log.EntryLevelError || ev.Entry.Level == log.EntryLevelWarning {
			b.problems = append(b.problems, fmt.Sprintf("%s %s: %s %s", ev.Entry.Source, ev.Entry.Level, ev.Entry.Text, ev.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		b.under[string(ev.RequestID)] = underWay{ev.Request.URL, string(ev.LoaderID)}
	case *page.EventFrameNavigated:
		if ev.Frame.ParentID == "" { // nobody hears the end of what another page has asked for
			maps.DeleteFunc(b.under, func(_ string, r underWay) bool { return r.loader != string(ev.Frame.LoaderID) })
		}
	case *network.EventResponseReceived:
		if ev.Response.Status >= 400 {
			b.problems = append(b.problems, fmt.Sprintf("request answered with %d: %s", ev.Response.Status, ev.Response.URL))
		}
	case *network.EventLoadingFinished:
		delete(b.under, string(ev.RequestID))
	case *network.EventLoadingFailed:
		if !ev.Canceled { // by the page itself, which no longer wants the answer
			b.problems = append(b.problems, fmt.Sprintf("request failed with %s: %s", ev.ErrorText, b.under[string(ev.RequestID)].url))
		}
		delete(b.under, string(ev.RequestID))
	}
}

// expect says that the test makes a problem: one whose text matches is no failure.
func (b *tab) expect(pattern string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = append(b.expected, regexp.MustCompile(pattern))
}

// report fails the test for every problem that it has not expected.
func (b *tab) report() {
	b.t.Helper()
	for _, p := range b.unexpected() {
		b.t.Errorf("the page should not have done this: %s", p)
	}
}

// unexpected returns the problems that the test has not expected.
func (b *tab) unexpected() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.problems), func(p string) bool {
		return slices.ContainsFunc(b.expected, func(e *regexp.Regexp) bool { return e.MatchString(p) })
	})
}

// do runs steps in the browser.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, deadline)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// call runs a command of the protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, deadline)
	defer cancel()
	result, err := chromedp.Call(ctx, command, params)
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

// evaluate returns the value of an expression in the page. A promise is waited for.
func evaluate[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := tryEvaluate[T](b, expression)
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// tryEvaluate is evaluate for expressions that may fail for a while.
func tryEvaluate[T any](b *tab, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, deadline)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// open loads a path of eventsvc, such as /console/#/events, and waits until the page has begun.
func (b *tab) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.services.events + path))
	b.wait(`document.readyState === "complete"`)
}

// reload loads the page again, as a person does. The document before it may answer for a while.
func (b *tab) reload() {
	b.t.Helper()
	evaluate[bool](b, `globalThis.before = true`)
	b.do(chromedp.Reload())
	b.wait(`!globalThis.before && document.readyState === "complete"`)
}

// signIn signs in as a client, with its id and secret.
func (b *tab) signIn(client string) {
	b.t.Helper()
	b.wait(`document.querySelector("dialog.signin[open]")`)
	b.click(`dialog.signin input[name=mode][value=client]`)
	b.fill(`dialog.signin input[name=id]`, client)
	b.fill(`dialog.signin input[name=secret]`, clientSecret)
	b.key("Enter")
	b.wait(`!document.querySelector("dialog.signin")`)
	b.settled()
}

// signOut signs out in the settings.
func (b *tab) signOut() {
	b.t.Helper()
	b.click("button[aria-label=Settings]")
	b.clickText(".panel button", "Sign out")
	b.wait(`document.querySelector("dialog.signin[open]")`)
}

// signInWithToken signs in with a token that is pasted.
func (b *tab) signInWithToken(token string) {
	b.t.Helper()
	b.wait(`document.querySelector("dialog.signin[open]")`)
	b.click(`dialog.signin input[name=mode][value=token]`)
	b.fill(`dialog.signin textarea[name=token]`, token)
	b.click(`dialog.signin button[type=submit]`)
	b.wait(`!document.querySelector("dialog.signin")`)
	b.settled()
}

// wait waits until an expression is true.
func (b *tab) wait(expression string) {
	b.t.Helper()
	testenv.Eventually(b.t, expression, deadline, func() error {
		ok, err := tryEvaluate[bool](b, "Boolean("+expression+")")
		if err == nil && !ok {
			err = fmt.Errorf("it is false%s", b.trouble())
		}
		return err
	})
}

// trouble is what the page has done wrong so far, to be read when something does not come.
func (b *tab) trouble() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.problems) == 0 {
		return ""
	}
	return "; the page has trouble:\n  " + strings.Join(b.problems, "\n  ")
}

// settled waits until the page has what it asked for and has drawn it. Watches never end, so they do not count.
func (b *tab) settled() {
	b.t.Helper()
	var asking []string
	testenv.Eventually(b.t, "the page is settled", deadline, func() error {
		for range 2 { // drawing an answer may ask for more
			if _, err := tryEvaluate[bool](b, `document.fonts.ready.then(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn(true)))))`); err != nil {
				return err
			}
			if asking = b.asking(); len(asking) > 0 {
				return fmt.Errorf("it waits for %s", asking)
			}
		}
		return nil
	})
}

// asking are the requests under way, without watches.
func (b *tab) asking() (urls []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.under {
		if !strings.Contains(r.url, "watch=true") {
			urls = append(urls, r.url)
		}
	}
	return urls
}

// text is the visible text of the first element that a selector finds, "" if there is none.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return evaluate[string](b, fmt.Sprintf(`document.querySelector(%s)?.innerText ?? ""`, quoted(selector)))
}

// texts are the visible texts of all elements that a selector finds.
func (b *tab) texts(selector string) []string {
	b.t.Helper()
	return evaluate[[]string](b, fmt.Sprintf(`[...document.querySelectorAll(%s)].map((e) => e.innerText)`, quoted(selector)))
}

// count is how many elements a selector finds.
func (b *tab) count(selector string) int {
	b.t.Helper()
	return evaluate[int](b, fmt.Sprintf(`document.querySelectorAll(%s).length`, quoted(selector)))
}

// waitText waits until an element that a selector finds has a text.
func (b *tab) waitText(selector, text string) {
	b.t.Helper()
	b.wait(fmt.Sprintf(`[...document.querySelectorAll(%s)].some((e) => e.innerText.includes(%s))`, quoted(selector), quoted(text)))
}

// fill writes a text into a field, in the place of what it has.
func (b *tab) fill(selector, text string) {
	b.t.Helper()
	b.click(selector)
	b.key("a", chromedp.ModifierCtrl)
	if text == "" {
		b.key("Delete")
		return
	}
	b.typing(text)
}

// typing writes a text where the focus is, key by key.
func (b *tab) typing(text string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(text))
}

// key presses a key: a letter, or the name of another one.
func (b *tab) key(name string, modifiers ...chromedp.Modifier) {
	b.t.Helper()
	key := cmp.Or(keys[name], name)
	if len([]rune(key)) != 1 {
		b.t.Fatalf("no key is named %q", name)
	}
	if r := []rune(key)[0]; r >= ' ' && r <= '~' && len(modifiers) == 0 {
		// In one step, so that a page that takes the key for itself is not sent its letter.
		call(b, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: key, Text: key})
		call(b, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyUp, Key: key})
		return
	}
	b.do(chromedp.KeyEvent(key, chromedp.KeyModifiers(modifiers...)))
}

var keys = map[string]string{
	"Enter": kb.Enter, "Escape": kb.Escape, "Tab": kb.Tab, "Backspace": kb.Backspace, "Delete": kb.Delete, "Space": " ",
	"ArrowUp": kb.ArrowUp, "ArrowDown": kb.ArrowDown, "ArrowLeft": kb.ArrowLeft, "ArrowRight": kb.ArrowRight,
	"Home": kb.Home, "End": kb.End, "PageUp": kb.PageUp, "PageDown": kb.PageDown,
}

// size changes the size of the window.
func (b *tab) size(width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
}

// zoom enlarges everything in a window of a size, as a person does with Ctrl and +: what is left of the window is
// smaller.
func (b *tab) zoom(factor float64, width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(int64(float64(width)/factor), int64(float64(height)/factor), chromedp.EmulateScale(factor)))
}

// dark changes the colours that the system asks for.
func (b *tab) dark(dark bool) {
	b.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}

// tree is the accessibility tree of the page: what a screen reader is told.
func (b *tab) tree() []*accessibility.Node {
	b.t.Helper()
	return call(b, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes
}

// shot writes a screenshot of the window, if CONSOLE_SCREENSHOTS names a directory for it.
func (b *tab) shot(name string) {
	b.t.Helper()
	if dir := os.Getenv("CONSOLE_SCREENSHOTS"); dir != "" {
		b.save(filepath.Join(dir, name+".png"))
	}
}

// save writes a screenshot of the window into a file: .webp for pages, which is small, or .png.
func (b *tab) save(file string) {
	b.t.Helper()
	params := page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng}
	if filepath.Ext(file) == ".webp" {
		params = page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatWebp, Quality: new(int64(80))}
	}
	image := call(b, page.CaptureScreenshot, params).Data
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, image, 0o644)
	}
	if err != nil {
		b.t.Errorf("screenshot %s: %v", file, err)
	}
}

// quoted is a text as a script has it.
func quoted(text string) string {
	b, _ := json.Marshal(text) // a text can always be encoded
	return string(b)
}
