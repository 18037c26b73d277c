package report

import (
	"bytes"
	"image/color"
	"math"
	"os"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	share "loam/internal/chart"
)

// chart is a plot with its legend on the right, where it covers nothing.
type chart struct {
	plot   *plot.Plot
	legend plot.Legend
	height vg.Length
}

const (
	width       = 17 * vg.Centimeter
	height      = 8 * vg.Centimeter
	legendWidth = 4.4 * vg.Centimeter
	margin      = 6 // points
)

func newChart(x, y string) *chart {
	plot.DefaultFont, plotter.DefaultFont = share.Sans, share.Sans
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

// save writes the chart as SVG.
func (c *chart) save(file string) error {
	svg := vgsvg.NewWith(vgsvg.UseWH(width, c.height))
	canvas := draw.New(svg)
	canvas.SetColor(color.White) // the background must cover the legend too, because pages may be dark
	canvas.Fill(canvas.Rectangle.Path())
	c.plot.Draw(draw.Crop(canvas, margin, -legendWidth, margin, -margin))
	c.legend.Draw(draw.Crop(canvas, width-legendWidth+2*margin, -margin, margin, -margin))
	var b bytes.Buffer
	if err := share.Save(&b, svg); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}

// plainTicks are gonum's default ticks, with plain numbers as labels.
type plainTicks struct{}

func (plainTicks) Ticks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i, t := range ticks {
		if t.Label != "" {
			ticks[i].Label = plain(t.Value)
		}
	}
	return ticks
}

// decades turns the axis of values that are base-10 logarithms into a logarithmic axis. It extends from
// one power of ten to another, with a labelled tick at each power and small ticks between. (gonum's own
// logarithmic scale does not centre the label of the axis, and shrinks the plot to make room for it.)
func decades(a *plot.Axis) {
	a.Min, a.Max = math.Floor(a.Min), math.Ceil(a.Max)
	var ticks []plot.Tick
	for power := a.Min; power < a.Max; power++ {
		ticks = append(ticks, plot.Tick{Value: power, Label: plain(math.Pow(10, power))})
		for digit := 2.0; digit < 10; digit++ {
			ticks = append(ticks, plot.Tick{Value: power + math.Log10(digit)})
		}
	}
	ticks = append(ticks, plot.Tick{Value: a.Max, Label: plain(math.Pow(10, a.Max))})
	a.Tick.Marker = plot.ConstantTicks(ticks)
}

// plain formats a number without trailing zeros.
func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
