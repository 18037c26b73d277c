// Package chart is the common part of all plots: the font, the margins, and the room for text. No text is cut off in
// any viewer.
//
// gonum includes the Liberation fonts, measures text with them, and names them in its output. If they are not
// installed, the viewer substitutes another font, whose text may be up to a fifth wider.
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

// Sans is the font of all plots.
var Sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

// New returns an empty plot.
func New() *plot.Plot {
	p := plot.New()
	for _, s := range []*text.Style{&p.Title.TextStyle, &p.Legend.TextStyle, &p.X.Label.TextStyle, &p.X.Tick.Label, &p.Y.Label.TextStyle, &p.Y.Tick.Label} {
		s.Font.Typeface, s.Font.Variant = Sans.Typeface, Sans.Variant
	}
	p.Title.Padding = vg.Points(8)
	p.Legend.Padding = vg.Points(3)
	return p
}

// Names labels the values 0, 1, 2 ... of the Y axis.
func Names(p *plot.Plot, names ...string) {
	roomy := make([]string, len(names))
	for i, n := range names {
		roomy[i] = n + room(n)
	}
	p.NominalY(roomy...)
}

// Entry adds an entry to the legend of a plot.
func Entry(p *plot.Plot, name string, marks ...plot.Thumbnailer) {
	p.Legend.Add(name+room(name), marks...)
}

// room returns spaces that are together about a fifth as wide as the text name. Appended
// to a right-aligned text, they leave room for a wider font. They are no-break spaces,
// which SVG preserves.
func room(name string) string {
	const width, letter = 0.28, 0.55 // widths in em of a space and of an average letter
	return strings.Repeat("\u00a0", 1+int(0.2*letter/width*float64(len(name))))
}

// Write writes a plot as SVG.
func Write(out io.Writer, p *plot.Plot, width, height vg.Length) error {
	const margin = 10 // in points
	svg := vgsvg.NewWith(vgsvg.UseWH(width, height))
	canvas := draw.New(svg)
	canvas.SetColor(p.BackgroundColor) // the background must include the margin, because pages may be dark
	canvas.Fill(canvas.Rectangle.Path())
	p.Draw(draw.Crop(canvas, margin, -margin, margin, -margin))
	return Save(out, svg)
}

// Save writes a drawing as SVG, and adds substitute fonts to it.
func Save(out io.Writer, svg *vgsvg.Canvas) error {
	var b bytes.Buffer
	if _, err := svg.WriteTo(&b); err != nil {
		return err
	}
	named := []byte("font-family:Liberation Sans")
	_, err := out.Write(bytes.ReplaceAll(b.Bytes(), named, append(named, ", Arial, sans-serif"...)))
	return err
}
