// Package chart has what all our plots share: their font, room around them, and that their
// text is whole wherever they are looked at.
//
// gonum measures text by the Liberation fonts, which it has with it, and names them in what
// it draws. Where they are not installed another font stands in: one of the same widths, if
// there is any, or one that is up to a fifth wider.
package chart

import (
	"bytes"
	"io"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Sans is the font.
var Sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

// New is an empty plot.
func New() *plot.Plot {
	p := plot.New()
	for _, s := range []*text.Style{&p.Title.TextStyle, &p.Legend.TextStyle, &p.X.Label.TextStyle, &p.X.Tick.Label, &p.Y.Label.TextStyle, &p.Y.Tick.Label} {
		s.Font.Typeface, s.Font.Variant = Sans.Typeface, Sans.Variant
	}
	p.Title.Padding = vg.Points(8)
	p.Legend.Padding = vg.Points(3)
	return p
}

// Names puts names in place of the numbers 0, 1, 2 ... of the Y axis.
func Names(p *plot.Plot, names ...string) {
	roomy := make([]string, len(names))
	for i, n := range names {
		roomy[i] = n + room(n)
	}
	p.NominalY(roomy...)
}

// Entry adds a name to the legend of a plot.
func Entry(p *plot.Plot, name string, marks ...plot.Thumbnailer) {
	p.Legend.Add(name+room(name), marks...)
}

// room is as wide as a fifth of the name: spaces, which SVG keeps. What stands to the left of
// something ends in it.
func room(name string) string {
	const width, letter = 0.28, 0.55 // of a space and, on the average, of a letter
	return strings.Repeat("\u00a0", 1+int(0.2*letter/width*float64(len(name))))
}

// Write draws a plot as SVG.
func Write(out io.Writer, p *plot.Plot, width, height vg.Length) error {
	const margin = 10 // points
	svg := vgsvg.NewWith(vgsvg.UseWH(width, height))
	canvas := draw.New(svg)
	canvas.SetColor(p.BackgroundColor) // the margin too: pages may be dark
	canvas.Fill(canvas.Rectangle.Path())
	p.Draw(draw.Crop(canvas, margin, -margin, margin, -margin))
	return Save(out, svg)
}

// Save writes what was drawn, with the fonts that may stand in.
func Save(out io.Writer, svg *vgsvg.Canvas) error {
	var b bytes.Buffer
	if _, err := svg.WriteTo(&b); err != nil {
		return err
	}
	named := []byte("font-family:Liberation Sans")
	_, err := out.Write(bytes.ReplaceAll(b.Bytes(), named, append(named, ", Arial, sans-serif"...)))
	return err
}
