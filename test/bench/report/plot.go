package report

import (
	"bytes"
	"fmt"
	"image/color"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"loam/test/bench/plan"
	"loam/test/bench/subject"
)

// picture is a plot that has been written.
type picture struct {
	group string // the heading that it stands under
	title string
	file  string
}

// plots draws what the results have figures for.
func plots(dir string, r *plan.Results) ([]picture, error) {
	var out []picture
	for _, d := range drawings {
		p, height, err := d.draw(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.file, err)
		}
		if p == nil {
			continue
		}
		if err := save(filepath.Join(dir, d.file), p, height); err != nil {
			return nil, err
		}
		out = append(out, d.picture)
	}
	return out, nil
}

// drawing makes one plot, nil if there are no figures for it.
type drawing struct {
	picture
	draw func(*plan.Results) (*plot.Plot, vg.Length, error)
}

var drawings = []drawing{
	{picture{plan.OverPipe, "Bulk throughput over a pipe", "pipe-bulk.svg"}, bars(plan.OverPipe, "Gb/s", "Gb/s")},
	{picture{plan.OverTap, "Bulk throughput over a tap", "tap-bulk.svg"}, bars(plan.OverTap, "Gb/s", "Gb/s")},
	{picture{plan.OverPipe, "Ping-pong over a pipe", "pipe-pingpong.svg"}, bars(plan.OverPipe, "µs", "round trip of one byte, µs")},
	{picture{plan.OverTap, "Ping-pong over a tap", "tap-pingpong.svg"}, bars(plan.OverTap, "µs", "round trip of one byte, µs")},
	{picture{plan.Echo, "Latency by pings at once", "echo.svg"}, curves(plan.Echo, "pings at once", "mean time to the reply, µs", true)},
	{picture{plan.Clients, "Throughput by clients at once", "clients.svg"}, curves(plan.Clients, "clients, 4 kB each", "throughput, Mb/s", false)},
	{picture{hopsTitle, "Cost of a packet by batch size", "hops.svg"}, hopCurve},
}

// colours are told apart without seeing red and green, and in grey.
var colours = map[string]color.Color{
	subject.Loam:       color.RGBA{0x1b, 0x5e, 0x8c, 0xff},
	subject.GVisor:     color.RGBA{0xe6, 0x8a, 0x1f, 0xff},
	subject.GVisorVnet: color.RGBA{0xf4, 0xc9, 0x8e, 0xff},
	subject.Linux:      color.RGBA{0x9a, 0x9a, 0x9a, 0xff},
}

var shapes = map[string]draw.GlyphDrawer{
	subject.Loam:       draw.CircleGlyph{},
	subject.GVisor:     draw.SquareGlyph{},
	subject.GVisorVnet: draw.PyramidGlyph{},
	subject.Linux:      draw.CrossGlyph{},
}

const width = 16 * vg.Centimeter

// newPlot has room between axes and text, and a legend at the top.
func newPlot() *plot.Plot {
	p := plot.New()
	p.X.Padding, p.Y.Padding = 0, 0
	p.X.Label.Padding, p.Y.Label.Padding = vg.Points(4), vg.Points(4)
	p.Legend.Top = true
	p.Legend.Padding = vg.Points(3)
	p.Legend.ThumbnailWidth = vg.Points(14)
	return p
}

// save writes p as SVG. The font that gonum names is not everywhere; the two
// added have the same widths.
func save(file string, p *plot.Plot, height vg.Length) error {
	c := vgsvg.NewWith(vgsvg.UseWH(width, height))
	p.Draw(draw.New(c))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return err
	}
	svg := bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans, Arial, sans-serif"))
	return os.WriteFile(file, svg, 0o644)
}

// curves draws an experiment: figures by how many at once.
func curves(group, x, y string, logarithmic bool) func(*plan.Results) (*plot.Plot, vg.Length, error) {
	return func(r *plan.Results) (*plot.Plot, vg.Length, error) {
		p := newPlot()
		p.X.Label.Text, p.Y.Label.Text = x, y
		drawn := false
		for _, name := range order {
			points := series(r, group, name)
			if len(points) == 0 {
				continue
			}
			if err := addCurve(p, title(name), points, colours[name], shapes[name]); err != nil {
				return nil, 0, err
			}
			drawn = true
		}
		if !drawn {
			return nil, 0, nil
		}
		p.Legend.Left = true
		if logarithmic {
			logScale(&p.X)
			logScale(&p.Y)
		} else {
			p.Y.Min = 0
			p.Y.Max *= 1.25 // room for the legend
		}
		return p, 9 * vg.Centimeter, nil
	}
}

// series are the points of one subject in an experiment.
func series(r *plan.Results, group, name string) plotter.XYs {
	var points plotter.XYs
	for _, o := range r.Rows {
		if f, ok := o.Of(name); ok && o.Group == group && o.AtOnce > 0 {
			points = append(points, plotter.XY{X: float64(o.AtOnce), Y: f.Median})
		}
	}
	return points
}

func addCurve(p *plot.Plot, name string, points plotter.XYs, c color.Color, shape draw.GlyphDrawer) error {
	line, dots, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Color, line.Width = c, vg.Points(1.5)
	dots.Color, dots.Shape, dots.Radius = c, shape, vg.Points(2.5)
	p.Add(line, dots)
	p.Legend.Add(name, line, dots)
	return nil
}

func logScale(a *plot.Axis) {
	a.Scale = plot.LogScale{}
	a.Tick.Marker = plot.LogTicks{Prec: -1}
}
