//go:build browser

package browser

import (
	"bytes"
	"flag"
	"image"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

var updateScreenshots = flag.Bool("update-screenshots", false, "write the pictures of docs/images anew")

// maxPicture bounds the size of a picture in the repository, in bytes.
const maxPicture = 250 << 10

// TestScreenshots takes the pictures of the documentation.
func TestScreenshots(t *testing.T) {
	t.Parallel()
	s, b := start(t), newBrowser(t)
	p := b.open(t, s.page)
	p.allowClipboard()
	for _, number := range []int{1, 2, 3} {
		openTab(p, "Lessons")
		learn(t, p, s, number)
	}
	openTab(p, "Requests")
	for name, picture := range map[string]struct{ row, place string }{
		"created": {"create first", "Strategy"},
		"refused": {"create three-mistakes", "Validation"},
		"list":    {"create first", ""},
	} {
		// Whoever chooses by hand is not led on to what comes next.
		p.await(`[...document.querySelectorAll(".row")].find((row) => (row.querySelector(".verb").textContent + " " + row.querySelector(".object").textContent).startsWith(%q))?.click() ?? true`, picture.row)
		p.await("document.querySelector('main .answer strong') && !document.querySelector('.panel')")
		if picture.place != "" {
			p.click(".box[data-place='" + picture.place + "']")
			p.await("document.querySelector('.panel')")
		}
		p.await("document.getAnimations().length === 0")
		data, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
		p.must(err, "taking the picture "+name)
		data = smaller(t, data)
		if len(data) == 0 || len(data) > maxPicture {
			t.Errorf("%s has %d bytes, want at most %d", name, len(data), maxPicture)
		}
		if *updateScreenshots {
			p.must(os.WriteFile(filepath.Join(root, "docs/images", name+".png"), data, 0o644), "writing the picture "+name)
		}
	}
}

// smaller is the same picture with 32 shades of each colour, and compressed
// better for it.
func smaller(t *testing.T, data []byte) []byte {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	bounds := picture.Bounds()
	few := image.NewRGBA(bounds)
	draw.Draw(few, bounds, picture, bounds.Min, draw.Src)
	for i, shade := range few.Pix {
		few.Pix[i] = shade>>3<<3 | shade>>5
	}
	var packed bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&packed, few); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}
