package main

import (
	"strings"
	"unicode"
)

// style is the number of an ANSI escape sequence.
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

// painter is the only way to the screen for what users and servers wrote: of
// that it leaves nothing that a terminal would obey.
type painter struct {
	color bool
}

func (p painter) paint(s style, text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
	if !p.color || s == plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}
