//go:build browser

package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

// newNetwork returns a valid one.
func newNetwork(name string) *samplecrdv1.Network {
	return &samplecrdv1.Network{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: samplecrdv1.NetworkSpec{Subnet: samplecrdv1.Subnet{CIDR: "10.200.0.0/24"}}}
}

// findNoSecrets sends canaries wherever a secret may stand, and looks for them
// in all that the page can show.
func findNoSecrets(t *testing.T, p *tab, s *server) {
	config := s.config(t)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	const canary = "canary-c0ffee"
	const path = "/apis/samplecrd.k8s.io/v1/namespaces/default/networks"
	object := `{"apiVersion":"samplecrd.k8s.io/v1","kind":"Network","metadata":{"name":"canary"%s},"spec":{"cidr":"10.201.0.0/24"%s}}`
	for name, tc := range map[string]struct {
		method, query, body string
		header              map[string]string
	}{
		"token":         {method: http.MethodGet, header: map[string]string{"Authorization": "Bearer " + canary}},
		"cookie":        {method: http.MethodGet, header: map[string]string{"Cookie": "session=" + canary}},
		"extra":         {method: http.MethodGet, header: map[string]string{"Impersonate-User": "bob", "Impersonate-Extra-Token": canary}},
		"parameter":     {method: http.MethodGet, query: "?access_token=" + canary},
		"unknown field": {method: http.MethodPost, query: "?dryRun=All", body: fmt.Sprintf(object, "", `,"password":"`+canary+`"`)},
		"last applied":  {method: http.MethodPost, query: "?dryRun=All", body: fmt.Sprintf(object, `,"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"`+canary+`"}`, "")},
	} {
		request, err := http.NewRequestWithContext(t.Context(), tc.method, config.Host+path+tc.query, strings.NewReader(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		id := "canary-" + strings.ReplaceAll(name, " ", "-")
		request.Header.Set("Audit-ID", id)
		request.Header.Set("Content-Type", "application/json")
		for key, value := range tc.header {
			request.Header.Set(key, value)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body(t, response.Body)
		openTab(p, "Requests")
		p.await("document.getElementById(%q)", "row-"+id)
	}
	secrets := []string{canary, s.page[strings.LastIndex(strings.TrimSuffix(s.page, "/"), "/")+1:]}
	for _, secret := range []string{string(config.KeyData), config.BearerToken} {
		if lines := strings.Split(secret, "\n"); len(lines) > 1 {
			secrets = append(secrets, lines[1])
		}
	}
	// Each trace, and each stage of those with canaries, as they stand in the page.
	found := eval[[]string](p, `(async () => {
		const found = [], secrets = %s;
		const shown = async (hash, isThere) => {
			location.hash = hash;
			while (!isThere()) await new Promise((next) => setTimeout(next, 5));
			const text = document.documentElement.outerHTML;
			found.push(...secrets.filter((secret) => text.includes(secret)).map((secret) => hash + " shows " + secret));
		};
		const names = [...document.querySelectorAll(".row")].map((row) => row.id.slice(4));
		for (const name of names) {
			await shown("trace=" + name, () => document.querySelector("main .answer strong") && document.querySelector(".row[aria-selected=true]").id === "row-" + name);
			if (!name.startsWith("canary-")) continue;
			for (const place of [...document.querySelectorAll(".box:not(.absent)[data-place]")].map((box) => box.dataset.place)) {
				await shown("trace=" + name + "&stage=" + place, () => document.querySelector(".box[aria-pressed=true]")?.dataset.place === place);
			}
		}
		return [...new Set(found), names.length + " traces"];
	})()`, quoted(secrets))
	if len(found) > 1 {
		t.Errorf("the page shows secrets: %q", found)
	}
	t.Logf("looked for %d secrets in %s", len(secrets), found[len(found)-1])
}

// quoted is a list as JavaScript writes it.
func quoted(list []string) string {
	var all []string
	for _, one := range list {
		all = append(all, fmt.Sprintf("%q", one))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// tooWide are the elements that are wider than they may show; commands and
// objects have lines of their own.
const tooWide = `[...document.querySelectorAll("html, body, body *")].filter((element) =>
	!element.matches("pre, textarea, input") && element.scrollWidth > element.clientWidth && (element.localName === "html" || ["auto", "scroll"].includes(getComputedStyle(element).overflowX))).map((element) => element.localName + "." + element.className)`

// contrast is the ratio of a text and what is behind it, in the least readable
// of the elements that have text of their own.
const contrast = `(() => {
	const parse = (color) => color.match(/[\d.]+/g).map(Number);
	const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
	const behind = (element) => { for (; element; element = element.parentElement) { const back = parse(getComputedStyle(element).backgroundColor); if (back.length === 3 || back[3] === 1) return back; } return [255, 255, 255]; };
	let least = { ratio: 21 };
	for (const element of document.body.querySelectorAll("*")) {
		if (!element.checkVisibility() || ![...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
		const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))];
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < least.ratio) least = { ratio, what: element.outerHTML.slice(0, 200) };
	}
	return least;
})()`

type leastReadable struct {
	Ratio float64 `json:"ratio"`
	What  string  `json:"what"`
}

// seeLooks sees the page in both languages, wide and narrow, light and dark.
func seeLooks(t *testing.T, p *tab) {
	tabs := map[string][]string{"en": {"Requests", "Try it", "Lessons"}, "zh": {"请求", "动手试试", "课程"}}
	p.await("document.querySelector('.row')?.click() ?? true")
	for language, names := range tabs {
		eval[bool](p, "document.querySelector('.languages [lang=%s]').click() ?? true", language)
		p.await("document.documentElement.lang === %q", language)
		if got := eval[bool](p, `/\p{Script=Han}/u.test(document.querySelector("h1").textContent)`); got != (language == "zh") {
			t.Errorf("the title in %s has the wrong language", language)
		}
		for _, width := range []int64{1280, 400} {
			for _, name := range names {
				for _, scheme := range []string{"light", "dark"} {
					p.resize(width)
					_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
					p.must(err, "choosing "+scheme)
					openTab(p, name)
					p.await("innerWidth === %d && matchMedia('(prefers-color-scheme: %s)').matches", width, scheme)
					if wide := eval[[]string](p, tooWide); len(wide) > 0 {
						t.Errorf("%s, %s, %s: at a width of %d these scroll sideways: %q", language, name, scheme, width, wide)
					}
					p.await("document.getAnimations().length === 0")
					if least := eval[leastReadable](p, contrast); least.Ratio < 4.5 {
						t.Errorf("%s, %s, %s, %d: contrast %.2f of %s", language, name, scheme, width, least.Ratio, least.What)
					}
				}
			}
		}
	}
	eval[bool](p, "document.querySelector('.languages [lang=zh]').click() ?? true")
	openTab(p, "课程")
	if got := eval[[]string](p, `[...document.querySelectorAll(".lessons article")].flatMap((lesson) => [...lesson.querySelectorAll("h2, h3, p, .looks li")]).map((one) => one.textContent).filter((text) => !/\p{Script=Han}/u.test(text))`); len(got) > 0 {
		t.Errorf("in Chinese the lessons have %q", got)
	}
	if got := eval[int](p, `[...document.querySelectorAll("[data-lesson] .chip")].filter((chip) => chip.textContent === "✓ 已完成").length`); got != len(claims) {
		t.Errorf("in Chinese %d lessons are done, want %d", got, len(claims))
	}
	eval[bool](p, "document.querySelector('.languages [lang=en]').click() ?? true")
	p.resize(1280)
}

// useKeys chooses a request and a stage without a mouse.
func useKeys(t *testing.T, p *tab) {
	openTab(p, "Requests")
	chosen := "document.querySelector('.row[aria-selected=true]')?.id"
	walkTo := func(selector string) {
		t.Helper()
		for range 40 {
			if eval[bool](p, "document.activeElement.matches(%q)", selector) {
				return
			}
			p.press(kb.Tab)
		}
		t.Fatalf("40 times the tab key did not lead to %s", selector)
	}
	walkTo(".rows")
	p.press(kb.Home)
	p.await("%s === document.querySelector('.row').id", chosen)
	p.press(kb.ArrowDown)
	p.await("%s === document.querySelectorAll('.row')[1].id", chosen)
	p.await("location.hash === '#trace=' + %s.slice(4) && document.querySelector('main .answer strong')", chosen)
	walkTo(".box")
	p.press(kb.ArrowRight)
	place := eval[string](p, "document.activeElement.dataset.place")
	p.press(kb.Enter)
	p.await("document.querySelector('.panel h2') && location.hash.endsWith('&stage=%[1]s') && document.activeElement.dataset.place === %[1]q", place)
	p.press(kb.ArrowRight)
	p.press(kb.Enter)
	p.await("!location.hash.endsWith('&stage=%s') && location.hash.includes('&stage=')", place)
	p.press(kb.Escape)
	p.await("!document.querySelector('.panel')")
}

// trySending sends dry runs from the page, and does the real thing with the
// command that stands there: each is answered as the other.
func trySending(t *testing.T, b *browser, s *server) {
	p := b.open(t, s.page)
	openTab(p, "Try it")
	for _, tc := range []struct {
		verb, name, cidr, mtu string
		answer                int
		says                  string // kubectl
	}{
		{"create", "tried", "10.203.0.0/24", "1400", http.StatusCreated, "tried created"},
		{"create", "tried", "10.203.0.0/24", "1400", http.StatusConflict, "AlreadyExists"},
		{"apply", "tried", "10.205.0.0/24", "1300", http.StatusConflict, `conflicts with "kubectl-create"`},
		{"apply", "applied", "10.204.0.0/24", "1400", http.StatusCreated, "applied serverside-applied"},
		{"apply", "applied", "10.204.0.0/24", "1300", http.StatusOK, "applied serverside-applied"},
	} {
		object := fmt.Sprintf("apiVersion: samplecrd.k8s.io/v1\nkind: Network\nmetadata:\n  name: %s\nspec:\n  cidr: %s\n  mtu: %s\n", tc.name, tc.cidr, tc.mtu)
		eval[bool](p, `(() => {
			const set = (selector, value, kind) => Object.assign(document.querySelector(selector), { value }).dispatchEvent(new Event(kind));
			return set(".editor textarea", %q, "input") && set(".editor select", %q, "change");
		})()`, object, tc.verb)
		p.click(".editor .primary")
		p.await("document.querySelector('.editor .result').textContent.includes(' %[1]d ') && document.querySelector('main .query').textContent.includes('dryRun=All') && document.querySelector('main .answer strong').textContent.includes('%[1]d')", tc.answer)
		if said := s.shell(t, eval[string](p, "document.querySelector('.editor .command').textContent")); !strings.Contains(said, tc.says) {
			t.Errorf("%s of %s: the dry run is answered with %d, the real thing with %s", tc.verb, object, tc.answer, said)
		}
		if tc.mtu == "1300" && tc.answer == http.StatusConflict { // a line for each field
			p.await(`document.querySelector("main .callout.refused").innerText.includes("\n- .spec.cidr\n- .spec.mtu")`)
			p.click(".box[data-place='Merge']")
			p.await(`document.querySelector(".panel .message").innerText.includes("\n- .spec.cidr\n- .spec.mtu")`)
		}
	}
}

// seeLatest has traces change while the page asks for them, and answers come in
// another order than the questions.
func seeLatest(t *testing.T, b *browser, s *server) {
	p := b.open(t, s.page)
	p.await("[...document.querySelectorAll('.row:not(.stopped)')].some((row) => row.querySelector('.verb').textContent === 'list')")
	// The version alone tells no change: a watch may tell of it with a lower one
	// than the trace has.
	got := eval[[]string](p, `(async () => {
		const { EventSource, fetch } = window;
		const tell = {}, answers = [];
		window.EventSource = class { addEventListener(name, listener) { tell[name] = (value) => listener({ data: JSON.stringify(value) }) } };
		window.fetch = (url) => !String(url).endsWith("/traces/one") ? fetch(url)
			: new Promise((answer) => answers.push((result) => answer({ ok: true, json: async () => ({ metadata: { resourceVersion: "5" }, result }) })));
		const { Stream } = await import(new URL("stream.js", location));
		const stream = new Stream(location.href);
		const one = { name: "one", resourceVersion: "5" };
		const ask = () => stream.trace("one").then(({ result }) => result);
		tell.state([one]);
		const seen = [];
		for (const result of ["Creating", "Success"]) {
			const asked = ask();
			answers.shift()?.(result);
			seen.push(await asked);
			tell.trace(one);
		}
		const old = ask();
		tell.trace(one);
		const latest = ask();
		answers[1]("deleted");
		seen.push(await latest);
		answers[0]("Deleting");
		seen.push(await old, await ask());
		Object.assign(window, { EventSource, fetch });
		return seen;
	})()`)
	if want := []string{"Creating", "Success", "deleted", "Deleting", "deleted"}; !slices.Equal(got, want) {
		t.Errorf("the states %q were handed out, want %q", got, want)
	}
	shown := eval[string](p, `(async () => {
		const fetch = window.fetch, answers = [];
		const tick = () => new Promise((next) => setTimeout(next));
		const row = [...document.querySelectorAll(".row:not(.stopped)")].find((row) => row.querySelector(".verb").textContent === "list");
		window.fetch = (url) => !String(url).endsWith(row.id.slice(4)) ? fetch(url)
			: new Promise((answer) => answers.push((code) => fetch(url).then((r) => r.json()).then((trace) => {
				trace.response.code = code;
				answer({ ok: true, json: async () => trace });
			})));
		row.click();
		await tick();
		dispatchEvent(new Event("hashchange")); // asked for again, as by news of it
		for (const end = Date.now() + 30000; answers.length < 2 && Date.now() < end;) await tick();
		for (const [i, code] of [[1, 299], [0, 298]]) {
			await answers[i](code);
			await tick();
		}
		window.fetch = fetch;
		return document.querySelector("main .answer strong").textContent;
	})()`)
	if strings.TrimSpace(shown) != "299" {
		t.Errorf("after an old state came late, the page shows %q", shown)
	}
}

// openMany opens more tabs than a browser has connections to one server. A tab
// that nobody looks at needs none, and catches up later.
func openMany(t *testing.T, b *browser, s *server) {
	const connections = 6
	first := b.open(t, s.page)
	look := func(p *tab, isHidden bool) {
		t.Helper()
		eval[bool](p, `Object.defineProperty(document, "hidden", { value: %t, configurable: true }) && document.dispatchEvent(new Event("visibilitychange"))`, isHidden)
	}
	for range connections {
		p := first.beside(t)
		ctx, cancel := context.WithTimeout(p.ctx, startDeadline)
		defer cancel()
		p.must(chromedp.Do(ctx, chromedp.Navigate(s.page)), "opening the page once more")
		p.await("document.querySelector('.connection.live')")
		look(p, true)
	}
	look(first, true)
	if _, err := s.clients(t).SamplecrdV1().Networks("default").Create(t.Context(), newNetwork("unwatched"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Fatal(err)
	}
	look(first, false)
	first.await("document.querySelector('.row[aria-selected=true] .object').textContent.startsWith('unwatched')")
}

// seeLive tells how long after its answer a request appears.
func seeLive(t *testing.T, b *browser, s *server) {
	p := b.open(t, s.page)
	p.await("document.querySelector('.connection.live')")
	var all []time.Duration
	for i := range 10 {
		name := fmt.Sprintf("live-%d", i)
		if _, err := s.clients(t).SamplecrdV1().Networks("default").Create(t.Context(), newNetwork(name), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			t.Fatal(err)
		}
		answered := time.Now()
		p.await("document.querySelector('.row .object').textContent.startsWith(%q)", name)
		all = append(all, time.Since(answered))
	}
	slices.Sort(all)
	t.Logf("requests appear after %v (median) and %v (slowest of %d)", all[len(all)/2], all[len(all)-1], len(all))
}

// comeFromElsewhere asks as other sites would, and other programs.
func comeFromElsewhere(t *testing.T, b *browser, s *server) {
	token := s.page[strings.LastIndex(strings.TrimSuffix(s.page, "/"), "/")+1:]
	host := strings.TrimPrefix(strings.TrimSuffix(s.page, token), "http://")
	host = strings.TrimSuffix(host, "/")
	for name, tc := range map[string]struct {
		path, method string
		tweak        func(*http.Request)
		want         int
	}{
		"as the page":      {path: token, want: http.StatusOK},
		"another host":     {path: token, tweak: func(r *http.Request) { r.Host = "attacker.example" }, want: http.StatusForbidden},
		"another token":    {path: "ABCDEFGHIJKLMNOPQRSTUVWXYZ/", want: http.StatusNotFound},
		"no token":         {want: http.StatusNotFound},
		"another's origin": {path: token + "dryrun?verb=create", method: http.MethodPost, tweak: func(r *http.Request) { r.Header.Set("Origin", "http://attacker.example") }, want: http.StatusForbidden},
		"no origin":        {path: token + "dryrun?verb=create", method: http.MethodPost, want: http.StatusForbidden},
	} {
		request, err := http.NewRequestWithContext(t.Context(), tc.method, "http://"+host+"/"+tc.path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if tc.tweak != nil {
			tc.tweak(request)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body(t, response.Body)
		if response.StatusCode != tc.want {
			t.Errorf("%s: %d, want %d", name, response.StatusCode, tc.want)
		}
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><title>another site</title>")
	}))
	defer other.Close()
	p := b.open(t, other.URL)
	if got := eval[string](p, `fetch(%q).then((r) => r.text(), () => "refused")`, s.page+"events"); got != "refused" {
		t.Errorf("another site reads %q", got)
	}
	sent := `{"apiVersion":"samplecrd.k8s.io/v1","kind":"Network","metadata":{"name":"from-elsewhere"},"spec":{"cidr":"10.202.0.0/24"}}`
	eval[bool](p, `fetch(%q, { method: "POST", mode: "no-cors", body: %q }).then(() => true, () => true)`, s.page+"dryrun?verb=create", sent)
	document, style := b.times(s.page), b.times(s.page+"page.css")
	eval[bool](p, `new Promise((done) => {
		const frame = document.createElement("iframe");
		frame.onload = () => done(true);
		frame.src = %q;
		document.body.append(frame);
	})`, s.page)
	if b.times(s.page) == document || b.times(s.page+"page.css") != style {
		t.Error("a frame of another site was not even asked for, or shows the page")
	}
	list, err := s.clients(t).PipelineV1alpha1().RequestTraces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, trace := range list.Items {
		if trace.Object != nil && trace.Object.Name == "from-elsewhere" {
			t.Error("another site has sent a request through the page")
		}
	}
}

// TestManyTraces opens the page on a server whose memory for traces is full.
func TestManyTraces(t *testing.T) {
	t.Parallel()
	const full = 256 // that many are kept with --standalone
	s, b := start(t), newBrowser(t)
	networks := s.clients(t).SamplecrdV1().Networks("default")
	for i := range full + 10 {
		if _, err := networks.Create(t.Context(), newNetwork(fmt.Sprintf("many-%d", i)), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			t.Fatal(err)
		}
	}
	p := b.open(t, "about:blank")
	began := time.Now()
	p.must(chromedp.Do(p.ctx, chromedp.Navigate(s.page)), "opening the page")
	// 200 are drawn, and told of the rest; the last write is opened by itself.
	p.await(`document.querySelectorAll(".row").length === 200 && document.querySelector(".rows .hint")?.textContent === "%d older ones are not shown" && document.querySelector("main .answer.passed")`, full-200)
	t.Logf("%d traces are there and one is drawn after %v", full, time.Since(began))
	// What the server forgets from now on goes here too.
	for i := range 10 {
		if _, err := networks.Create(t.Context(), newNetwork(fmt.Sprintf("more-%d", i)), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			t.Fatal(err)
		}
	}
	p.await(`document.querySelector(".row .object").textContent === "more-9dry run" && document.querySelector(".rows .hint").textContent === "%d older ones are not shown"`, full-200)
	if urls := b.outside(); len(urls) > 0 {
		t.Errorf("the page asked elsewhere: %q", urls)
	}
}

// TestStreamLives reads the stream of the page for two minutes, by its signs of
// life, beside a page that is open all the while.
func TestStreamLives(t *testing.T) {
	t.Parallel()
	const signs = 8 // one each 15 seconds
	s, b := start(t), newBrowser(t)
	p := b.open(t, s.page)
	p.await("document.querySelector('.connection.live')")
	eval[bool](p, `new MutationObserver(() => document.querySelector(".connection.live") || (document.body.dataset.lost = "true")).observe(document.querySelector("header"), { childList: true, subtree: true }) ?? true`)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.page+"events", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	began := time.Now()
	seen, states := 0, 0
	for line := range lines(t, response.Body) {
		switch {
		case strings.HasPrefix(line, ":"):
			seen++
		case line == "event: state":
			states++
		}
		if seen == signs {
			break
		}
	}
	if seen < signs || states != 1 {
		t.Errorf("%d signs of life and %d states, want %d and 1", seen, states, signs)
	}
	t.Logf("the stream gave %d signs of life in %v", seen, time.Since(began))
	if _, err := s.clients(t).SamplecrdV1().Networks("default").Create(t.Context(), newNetwork("late"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.await("[...document.querySelectorAll('.row .object')].some((one) => one.textContent.startsWith('late')) && document.querySelector('.connection.live') && !document.body.dataset.lost")
}
