package chart

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"gonum.org/v1/plot/plotter"
)

// Every text of a plot names a substitute font that every viewer has. Names do not overlap with the objects that they
// label, even if a font is a fifth wider.
func TestText(t *testing.T) {
	const name, size = "a name that is fairly long", 300
	p := New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = "title", "across", "up"
	p.X.Max, p.Y.Max = 10, 1
	Names(p, name, "b")
	line, err := plotter.NewLine(plotter.XYs{{X: 1, Y: 0}, {X: 9, Y: 1}})
	if err != nil {
		t.Fatal(err)
	}
	Entry(p, name, line)
	var out bytes.Buffer
	if err := Write(&out, p, size, size); err != nil {
		t.Fatal(err)
	}
	texts := regexp.MustCompile(`<text [^>]*font-family:([^;]*);[^>]*>([^<]*)<`).FindAllStringSubmatch(out.String(), -1)
	if len(texts) < 7 {
		t.Fatalf("%d texts in %s", len(texts), out.String())
	}
	found := 0
	for _, one := range texts {
		if one[1] != "Liberation Sans, Arial, sans-serif" {
			t.Errorf("%q is in %q", one[2], one[1])
		}
		if !strings.HasPrefix(one[2], name) {
			continue
		}
		found++
		if bare, all := p.Y.Tick.Label.Width(name), p.Y.Tick.Label.Width(one[2]); all < 1.2*bare || all > 1.3*bare {
			t.Errorf("%q is %.0f points wide, the name %.0f", one[2], all, bare)
		}
	}
	if found != 2 {
		t.Errorf("the name stands %d times in %s", found, out.String())
	}
}
