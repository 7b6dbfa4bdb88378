//go:build browser

package browser

import (
	"fmt"
	"strings"
	"testing"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
)

// refused tells that a place is marked so: with a frame in the red of the page,
// and the word.
const refused = `(() => {
	const box = document.querySelector(".box[data-place='%s']");
	return getComputedStyle(box).borderTopColor === "rgb(176, 21, 31)" && box.querySelector(".word").textContent === "refused" && box.querySelector(".mark").textContent === "✕";
})()`

// Expressions about the panel of the stage that is open.
const (
	added = "[...document.querySelectorAll('.panel .diff .added')].some((line) => line.textContent.includes('%s'))"
	says  = "document.querySelector('.panel .happened').textContent.includes('%s')"
)

// claim is what a look of a lesson shows.
type claim struct {
	look int    // from 1
	want string // an expression
}

// claims of each lesson, and what is waited for between its commands.
var claims = map[int]struct {
	claims  []claim
	between string
}{
	1: {claims: []claim{
		{2, fmt.Sprintf(added, "samplecrd.k8s.io/neutron")},
		{3, fmt.Sprintf(says, "/network-apiserver/samplecrd.k8s.io/networks/default/first")},
		{4, fmt.Sprintf(says, "POST /v2.0/networks") + " && " + fmt.Sprintf(says, "POST /v2.0/subnets")},
	}},
	2: {claims: []claim{{1, fmt.Sprintf(refused, "Validation") + " && document.querySelectorAll('.panel .errors li').length === 3"}}},
	3: {claims: []claim{
		{1, fmt.Sprintf(says, "impersonate:user-info users bob by admin")},
		{2, fmt.Sprintf(refused, "Authorization") + " && " + fmt.Sprintf(says, `User "bob" cannot list`)},
	}},
	4: {claims: []claim{{2, fmt.Sprintf(refused, "ValidatingAdmission") + " && " + fmt.Sprintf(says, "must lie inside an allowed range")}}},
	5: {claims: []claim{
		{1, fmt.Sprintf(refused, "Merge") + " && " + fmt.Sprintf(says, "the object has been modified")},
		{2, fmt.Sprintf(says, "KV/Range") + " && !" + fmt.Sprintf(says, "KV/Txn")},
	}},
	6: {claims: []claim{{1, fmt.Sprintf(refused, "Merge") + " && " + fmt.Sprintf(says, `conflict with "alice"`)}}},
	7: {claims: []claim{
		{1, fmt.Sprintf(added, "uid:")},
		{2, "!" + fmt.Sprintf(says, "KV/Txn")},
	}},
	8: {claims: []claim{
		{1, "document.querySelector('.callout.warned').textContent.includes('host bits')"},
		{2, fmt.Sprintf(says, "create subnet 192.168.0.0/16")},
	}},
	9: {claims: []claim{
		{1, fmt.Sprintf(added, "subnets:")},
		{2, fmt.Sprintf(says, "/network-apiserver/samplecrd.k8s.io/networks/default/first")},
		{3, fmt.Sprintf(added, "apiVersion: samplecrd.k8s.io/v2alpha1")},
	}},
	10: {claims: []claim{
		{1, fmt.Sprintf(added, "deletionTimestamp:")},
		{2, fmt.Sprintf(says, "DELETE /v2.0/networks/")},
		{3, "[...document.querySelectorAll('.panel .diff .removed')].some((line) => line.textContent.includes('samplecrd.k8s.io/neutron'))"},
	}},
	11: {
		between: "[...document.querySelectorAll('main .pass .failure')].some((line) => line.textContent.includes('QuotaExceeded'))",
		claims: []claim{
			{1, fmt.Sprintf(refused, "1.Neutron")},
			{3, fmt.Sprintf(says, "try again after")},
		},
	},
	12: {claims: []claim{{2, "[...document.querySelectorAll('.panel .happened dt')].some((name) => name.textContent === 'BOOKMARK')"}}},
}

func TestLessons(t *testing.T) {
	t.Parallel()
	s, b := start(t), newBrowser(t)
	p := b.open(t, s.page)
	p.allowClipboard()
	openTab(p, "Lessons")
	p.await("document.querySelectorAll('[data-lesson]').length === %d", len(claims))
	if setup := eval[string](p, "document.querySelector('pre.note').textContent"); !strings.Contains(setup, policyFlag+" "+policyFile) {
		t.Errorf("the lessons have the server started with %q, this test does it with %s %s", setup, policyFlag, policyFile)
	}
	for number := 1; number <= len(claims); number++ {
		t.Run(fmt.Sprint(number), func(t *testing.T) { learn(t, p.with(t), s, number) })
	}
	if t.Failed() {
		return
	}
	t.Run("Secrets", func(t *testing.T) { findNoSecrets(t, p.with(t), s) })
	t.Run("Looks", func(t *testing.T) { seeLooks(t, p.with(t)) })
	t.Run("Keys", func(t *testing.T) { useKeys(t, p.with(t)) })
	t.Run("Sending", func(t *testing.T) { trySending(t, b, s) })
	t.Run("Latest", func(t *testing.T) { seeLatest(t, b, s) })
	t.Run("Tabs", func(t *testing.T) { openMany(t, b, s) })
	t.Run("Live", func(t *testing.T) { seeLive(t, b, s) })
	t.Run("OtherSites", func(t *testing.T) { comeFromElsewhere(t, b, s) })
	if urls := b.outside(); len(urls) > 0 || len(b.asked) == 0 {
		t.Errorf("the page asked elsewhere: %q", urls)
	}
}

// learn does a lesson: it copies the commands and runs them, sees that the page
// notices, and looks where it says to.
func learn(t *testing.T, p *tab, s *server, number int) {
	lesson := fmt.Sprintf("[data-lesson='%d']", number)
	if got := eval[string](p, `document.querySelector("%s .chip").textContent`, lesson); got != "○ not yet" {
		t.Errorf("before anything was done, the lesson says %q", got)
	}
	commands := eval[int](p, `document.querySelectorAll("%s pre.run").length`, lesson)
	for i := range commands {
		if i > 0 && claims[number].between != "" {
			p.await("%s", claims[number].between)
		}
		eval[bool](p, `navigator.clipboard.writeText("nothing").then(() => true)`)
		p.click(fmt.Sprintf("%s .copied:nth-of-type(%d) button", lesson, i+1))
		p.await(`document.querySelectorAll("%s .copied button")[%d].textContent === "✓ Copied"`, lesson, i)
		copied := eval[string](p, "navigator.clipboard.readText()")
		t.Logf("%s\n%s", copied, s.shell(t, copied))
	}
	p.await(`document.querySelector("%s .chip").textContent === "✓ done"`, lesson)
	for _, claim := range claims[number].claims {
		p.click(fmt.Sprintf("%s .looks li:nth-child(%d) button", lesson, claim.look))
		p.await("%s", claim.want)
	}
}

// openTab opens one of those at the left.
func openTab(p *tab, name string) {
	p.t.Helper()
	p.await("[...document.querySelectorAll('[role=tab]')].some((tab) => tab.textContent === %q)", name)
	eval[bool](p, "[...document.querySelectorAll('[role=tab]')].find((tab) => tab.textContent === %q).click() ?? true", name)
}

// allowClipboard lets the page and the test use it, as a user would be asked to.
func (p *tab) allowClipboard() {
	p.t.Helper()
	for _, name := range []string{"clipboard-read", "clipboard-write"} {
		_, err := chromedp.CallBrowser(p.ctx, cdpbrowser.SetPermission, cdpbrowser.SetPermissionParams{
			Permission: &cdpbrowser.PermissionDescriptor{Name: name}, Setting: cdpbrowser.PermissionSettingGranted,
			BrowserContextID: chromedp.FromContext(p.ctx).BrowserContextID,
		})
		p.must(err, "allowing "+name)
	}
}
