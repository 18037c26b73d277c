package report

import (
	"bytes"
	"os"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// chart is a plot with its legend to the right of it, where it hides nothing.
type chart struct {
	plot   *plot.Plot
	legend plot.Legend
	height vg.Length
}

const (
	width       = 17 * vg.Centimeter
	height      = 8 * vg.Centimeter
	legendWidth = 4 * vg.Centimeter
	margin      = 6 // points
)

var sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

func newChart(x, y string) *chart {
	plot.DefaultFont, plotter.DefaultFont = sans, sans
	c := &chart{plot: plot.New(), legend: plot.NewLegend(), height: height}
	c.plot.X.Label.Text, c.plot.Y.Label.Text = x, y
	for _, axis := range []*plot.Axis{&c.plot.X, &c.plot.Y} {
		axis.Padding = 0
		axis.Label.Padding = vg.Points(4)
		axis.Label.TextStyle.Font.Size = vg.Points(10)
		axis.Tick.Label.Font.Size = vg.Points(9)
		axis.Tick.Marker = plainTicks{}
	}
	c.legend.Top, c.legend.Left = true, true
	c.legend.Padding = vg.Points(4)
	c.legend.ThumbnailWidth = vg.Points(16)
	c.legend.TextStyle.Font.Size = vg.Points(9)
	return c
}

// save writes the chart as SVG. The font that gonum names is not everywhere;
// the one that is added has the same widths.
func (c *chart) save(file string) error {
	svg := vgsvg.NewWith(vgsvg.UseWH(width, c.height))
	canvas := draw.New(svg)
	c.plot.Draw(draw.Crop(canvas, margin, -legendWidth, margin, -margin))
	c.legend.Draw(draw.Crop(canvas, width-legendWidth+2*margin, -margin, margin, -margin))
	var b bytes.Buffer
	if _, err := svg.WriteTo(&b); err != nil {
		return err
	}
	named := []byte("font-family:Liberation Sans")
	text := bytes.ReplaceAll(b.Bytes(), named, append(named, ", Arial, sans-serif"...))
	return os.WriteFile(file, text, 0o644)
}

// plainTicks are gonum's ticks without zeros that say nothing.
type plainTicks struct{}

func (plainTicks) Ticks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i, t := range ticks {
		if t.Label != "" {
			ticks[i].Label = strconv.FormatFloat(t.Value, 'g', 4, 64)
		}
	}
	return ticks
}
