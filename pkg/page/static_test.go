package page

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// staticFiles returns what a browser is given, by name.
func staticFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(static, "static", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := static.ReadFile(name)
		files[path.Base(name)] = string(data)
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	return files
}

func TestNothingComesFromElsewhere(t *testing.T) {
	external := regexp.MustCompile(`(?i)\bhttps?:|\bwss?:|["'(=]//[a-z]|@import`)
	for name, content := range staticFiles(t) {
		if found := external.FindString(content); found != "" {
			t.Errorf("%s has %q", name, found)
		}
	}
}

func TestNothingIsInline(t *testing.T) {
	inline := regexp.MustCompile(`(?i)<style|<script[^>]*>[^<]|<[a-z]+[^>]* (style|on[a-z]+)=|javascript:|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function`)
	for name, content := range staticFiles(t) {
		if found := inline.FindString(content); found != "" {
			t.Errorf("%s has %q", name, found)
		}
	}
}

func TestEachModuleThatIsImportedIsThere(t *testing.T) {
	files := staticFiles(t)
	imported := regexp.MustCompile(`(?m)^import .* from "(.*)";$|(?:src|href)="([^":]*\.\w+)"`)
	used := map[string]bool{"index.html": true}
	for name, content := range files {
		for _, match := range imported.FindAllStringSubmatch(content, -1) {
			module := path.Base(match[1] + match[2])
			used[module] = true
			if _, there := files[module]; !there {
				t.Errorf("%s imports %s, which is not there", name, module)
			}
		}
	}
	for name := range files {
		if !used[name] {
			t.Errorf("nothing uses %s", name)
		}
	}
}

func TestEachTextIsThereInBothLanguagesAndUsed(t *testing.T) {
	files := staticFiles(t)
	_, table, _ := strings.Cut(files["text.js"], "export const texts = {\n")
	table, _, isTable := strings.Cut(table, "\n};\n")
	if !isTable {
		t.Fatal("there are no texts")
	}
	line := regexp.MustCompile(`^  (\w+): \["((?:[^"\\]|\\.)+)", "((?:[^"\\]|\\.)+)"\],$`)
	placeholder := regexp.MustCompile(`\{\d\}`)
	scripts := ""
	for name, content := range files {
		if name != "text.js" {
			scripts += content
		}
	}
	keys := map[string]bool{}
	for text := range strings.SplitSeq(table, "\n") {
		match := line.FindStringSubmatch(text)
		if match == nil {
			t.Errorf("not one entry in two languages: %s", text)
			continue
		}
		key, english, chinese := match[1], match[2], match[3]
		if keys[key] {
			t.Errorf("%s is there twice", key)
		}
		keys[key] = true
		if !strings.ContainsFunc(chinese, func(r rune) bool { return unicode.Is(unicode.Han, r) }) || strings.ContainsFunc(english, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
			t.Errorf("%s has the wrong language", key)
		}
		if len(placeholder.FindAllString(english, -1)) != len(placeholder.FindAllString(chinese, -1)) {
			t.Errorf("%s takes other values in the other language", key)
		}
		if !strings.Contains(scripts, `"`+key+`"`) {
			t.Errorf("%s is not used", key)
		}
	}
	for _, match := range regexp.MustCompile(`\bt\("(\w+)"`).FindAllStringSubmatch(scripts, -1) {
		if !keys[match[1]] {
			t.Errorf("%s is used, and there is no such text", match[1])
		}
	}
}
