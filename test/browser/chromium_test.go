//go:build browser

package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// showDeadline is far above the second within which the page shows something: how
// soon it does is measured, not tested.
const showDeadline = time.Minute

// browser is a headless Chromium of this test alone.
type browser struct {
	ctx context.Context
	mu  sync.Mutex
	// asked are the URLs of all requests of all tabs.
	asked []string
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("these tests need Chromium (apt-get install chromium fonts-noto-cjk): %v", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.Flag("lang", "en-US"),
		// What the browser asks for by itself is not of the page.
		chromedp.Flag("disable-component-update", true), chromedp.Flag("no-pings", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium has none for root
	}
	// Ended by Cancel below, which waits until its process is gone.
	allocator, cancel := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	ctx, _ := chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {}))
	t.Cleanup(func() {
		ending, stop := context.WithTimeout(ctx, stopDeadline)
		defer stop()
		if err := chromedp.Cancel(ending); err != nil {
			t.Errorf("ending Chromium: %v", err)
		}
		cancel()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("starting %s: %v", path, err)
	}
	return &browser{ctx: ctx}
}

// outside are the requests that went elsewhere than to this machine.
func (b *browser) outside() (urls []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, url := range b.asked {
		if !strings.HasPrefix(url, "http://127.0.0.1:") && !strings.HasPrefix(url, "data:") {
			urls = append(urls, url)
		}
	}
	return urls
}

// times is how often a URL was asked for.
func (b *browser) times(url string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, asked := range b.asked {
		if asked == url {
			n++
		}
	}
	return n
}

// tab is one with a window and a storage of its own.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// open opens a page in English, 1280 pixels wide.
func (b *browser) open(t *testing.T, url string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &tab{t, ctx}
	err := chromedp.Listen(ctx, func(event any) {
		if request, ok := event.(*network.EventRequestWillBeSent); ok {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.asked = append(b.asked, request.Request.URL)
		}
	})
	p.must(err, "listening to the tab")
	_, err = chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	p.must(err, "focusing the tab")
	p.resize(1280)
	p.must(chromedp.Do(ctx, chromedp.Navigate(url)), "opening the page")
	return p
}

// beside is another tab, which shares its connections.
func (p *tab) beside(t *testing.T) *tab {
	ctx, cancel := chromedp.NewContext(p.ctx)
	t.Cleanup(cancel)
	return &tab{t, ctx}
}

func (p *tab) must(err error, what string) {
	p.t.Helper()
	if err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

func (p *tab) resize(width int64) {
	p.t.Helper()
	p.must(chromedp.Do(p.ctx, chromedp.EmulateViewport(width, 900)), "resizing the window")
}

// with has a copy of the tab speak for another test.
func (p *tab) with(t *testing.T) *tab { return &tab{t, p.ctx} }

// eval is the value of an expression, or of the promise that it is.
func eval[T any](p *tab, format string, args ...any) T {
	p.t.Helper()
	expression := fmt.Sprintf(format, args...)
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	p.must(err, expression)
	return value
}

// await returns when the expression has become true.
func (p *tab) await(format string, args ...any) {
	p.t.Helper()
	expression := fmt.Sprintf(format, args...)
	// Not chromedp.Poll, which compiles text, and that the page does not allow.
	became := eval[bool](p, `new Promise((done) => {
		const end = Date.now() + %d;
		const look = () => {
			let value;
			try { value = %s } catch {}
			if (value || Date.now() > end) done(Boolean(value)); else setTimeout(look, 10);
		};
		look();
	})`, showDeadline.Milliseconds(), expression)
	if !became {
		p.t.Fatalf("this did not come true within %v:\n%s\non the page\n%s", showDeadline, expression, eval[string](p, "location.hash + '\\n' + document.body.innerText"))
	}
}

// click clicks on the one element that is selected, as a mouse does.
func (p *tab) click(selector string) {
	p.t.Helper()
	p.await("document.querySelectorAll(%q).length === 1", selector)
	p.must(chromedp.Do(p.ctx, chromedp.Click(chromedp.CSS(selector))), "clicking on "+selector)
}

// press presses keys, wherever the focus is.
func (p *tab) press(keys string) {
	p.t.Helper()
	p.must(chromedp.Do(p.ctx, chromedp.KeyEvent(keys)), "pressing a key")
}
