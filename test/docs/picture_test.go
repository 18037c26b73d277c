package docs

import (
	"fmt"
	"html"
	"os"
	"slices"
	"strings"
	"testing"
)

// The picture in the README shows a terminal with commands and their output. TestCommands with -update writes it from
// the outputs of that run. Long outputs are cut, and the line about the choice of a platform is left out.

const (
	columns    = 84  // largest number of characters in a line
	mostOutput = 5   // largest number of lines of output shown for a command
	lineHeight = 20  // pixels
	charWidth  = 843 // hundredths of a pixel
	margin     = 20
)

// writePicture writes what a user sees from the first "loam run" on as an SVG image.
func writePicture(t *testing.T, file string, shown []string) {
	t.Helper()
	first := slices.IndexFunc(shown, func(line string) bool { return strings.HasPrefix(line, "$ loam run") })
	if first < 0 {
		t.Fatal("the README runs no program")
	}
	lines := fold(shown[first:])
	width, height := columns*charWidth/100+2*margin, len(lines)*lineHeight+2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="monospace" font-size="14">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="8" fill="#1b1f24"/>`+"\n", width, height)
	for i, line := range lines {
		color := "#c9d1d9"
		if strings.HasPrefix(line, "$ ") {
			color = "#7ee787"
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="%s" xml:space="preserve">%s</text>`+"\n",
			margin, margin+i*lineHeight+14, color, html.EscapeString(line))
	}
	b.WriteString("</svg>\n")
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// fold wraps long lines, cuts long outputs, and puts an empty line before each command but the first.
func fold(shown []string) (lines []string) {
	output := 0
	for _, line := range shown {
		if strings.HasPrefix(line, "loam: in a virtual machine") || strings.HasPrefix(line, "loam: as a process") {
			continue
		}
		if strings.HasPrefix(line, "$ ") {
			if output = 0; len(lines) > 0 {
				lines = append(lines, "")
			}
			lines = append(lines, wrap(line)...)
			continue
		}
		for _, part := range wrap(line) {
			if output++; output <= mostOutput {
				lines = append(lines, part)
			}
		}
	}
	return lines
}

// wrap splits a line into parts of at most columns characters.
func wrap(line string) (parts []string) {
	r := []rune(line)
	for len(r) > columns {
		parts, r = append(parts, string(r[:columns])), r[columns:]
	}
	return append(parts, string(r))
}

func TestFold(t *testing.T) {
	long := strings.Repeat("x", columns+1)
	got := fold([]string{"$ a", long, "1", "2", "3", "4", "$ b"})
	want := []string{"$ a", long[:columns], "x", "1", "2", "3", "", "$ b"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
