package console_test

import (
	"fmt"
	"net/url"
	"testing"
)

// hostile are texts that would run, load or draw something if any part of the page took them for more than text.
var hostile = []string{
	`<img src=x onerror="window.hacked=1">`, `"><script>window.hacked=1</script>`, `javascript:window.hacked=1`, `'-window.hacked-'`,
	`</textarea><svg onload=window.hacked=1>`, `{{constructor.constructor('window.hacked=1')()}}`, "\u202egnp.exe\u202c", "a\x00b", `"a:b" -c:"d`, `%3Cscript%3E`,
	`url(javascript:hacked)`, `expression(hacked)`, "line\nbreak\ttab", `__proto__`, "--%00 'NOT (👩\u200d👧 \u202b",
}

// TestHostileEvents: whatever is in the fields of an event is shown as text, and changes nothing else.
func TestHostileEvents(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	for i, text := range hostile {
		ev := event("default", fmt.Sprintf("hostile-%d", i))
		ev.Note, ev.Reason, ev.Action, ev.ReportingInstance = text, text, text, text
		ev.Regarding.Kind, ev.Regarding.Name, ev.Regarding.FieldPath = text, text, text
		ev.Annotations = map[string]string{"example.com/note": text}
		ev.Type = "Warning"
		s.create(t, ev)
	}
	b := openTab(t, s)
	b.open("/console/#/overview")
	b.signIn(admin)
	for _, view := range []string{"overview", "events", "live", "groups?by=object", "groups?by=kind", "groups?by=pattern", "changes?window=1h", "changes?window=1m&other=-1s"} {
		show(b, view)
		unharmed(b, view)
	}
	show(b, "events")
	rows := b.count("[data-row]")
	if rows != len(hostile) {
		t.Errorf("%d rows of %d events", rows, len(hostile))
	}
	for i := range rows {
		b.key("j")
		b.key("Enter")
		b.settled()
		b.wait(`document.querySelector(".drawer .asks")`)
		for _, form := range []string{"YAML", "JSON", "Details"} {
			b.clickText(".drawer .choice button", form)
		}
		b.wait(`document.querySelector(".drawer .asks")`)
		unharmed(b, fmt.Sprintf("the drawer of row %d", i))
		life := evaluate[string](b, `[...document.querySelectorAll(".asks a")].find((a) => a.textContent === "Life of the object").getAttribute("href")`)
		same := evaluate[string](b, `[...document.querySelectorAll(".asks a")].find((a) => a.textContent === "Same reason").getAttribute("href")`)
		show(b, life[2:])
		unharmed(b, life)
		show(b, same[2:])
		if b.count("[data-row]") == 0 {
			t.Errorf("%s finds nothing", same)
		}
		show(b, "events")
		for range i + 1 {
			b.key("j")
		}
	}
}

// TestHostileAddresses: whatever is in the address is data.
func TestHostileAddresses(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	s.create(t, event("default", "first"))
	b := openTab(t, s)
	b.expect("400|403|404") // questions that make no sense are refused
	b.open("/console/#/overview")
	b.signIn(admin)
	for _, text := range hostile {
		for view, parameters := range map[string][]string{
			"overview": {"q", "from", "to", "revision", "event"}, "groups": {"by", "order"}, "changes": {"at", "window", "other"},
			"object": {"kind", "ns", "name", "uid"},
		} {
			for _, parameter := range parameters {
				show(b, view+"?"+parameter+"="+url.QueryEscape(text))
				unharmed(b, view+" "+parameter)
			}
		}
		show(b, url.PathEscape(text))
		unharmed(b, text)
	}
	show(b, "overview")
	b.waitText("main", "occurrence")
	for _, text := range hostile[:5] {
		b.click(".box input")
		b.typing(text)
		b.key("Enter")
		b.settled()
		unharmed(b, text)
		show(b, "overview")
		b.click(".box input")
		b.key("a", ctrl)
		b.key("Delete")
	}
}

// show changes the fragment of the address, and waits until the page shows what it says.
func show(b *tab, fragment string) {
	b.t.Helper()
	evaluate[string](b, fmt.Sprintf(`location.hash = "#/" + %s`, quoted(fragment)))
	b.settled()
}

// unharmed fails the test if a text has become more than text.
func unharmed(b *tab, where string) {
	b.t.Helper()
	type facts struct {
		Hacked  bool
		Images  int
		Scripts int
		Frames  int
		Odd     int
		Drawn   bool
	}
	got := evaluate[facts](b, `({
		Hacked: "hacked" in window,
		Images: document.images.length,
		Scripts: document.scripts.length,
		Frames: document.querySelectorAll("iframe, object, embed, base, style, textarea").length,
		Odd: [...document.querySelectorAll("a[href]")].filter((a) => !["http:", "https:"].includes(a.protocol)).length,
		Drawn: document.querySelector("main") !== null,
	})`)
	if want := (facts{Images: 1, Scripts: 1, Drawn: true}); got != want {
		b.t.Errorf("%s: the page has %+v, want %+v", where, got, want)
	}
}
