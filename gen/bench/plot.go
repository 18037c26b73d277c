//go:build linux

package bench

import (
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Plot draws the rows as bars, the first on top, as SVG.
func Plot(out io.Writer, title string, rows []Row) error {
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text, p.X.Min = "million frames a second", 0
	values, names := plotter.Values{}, []string{}
	for i := len(rows) - 1; i >= 0; i-- {
		r := &rows[i]
		if r.Error != "" {
			continue
		}
		values = append(values, r.Median()/1e6)
		name := r.Name
		if r.Queues > 1 {
			name = fmt.Sprintf("%s, %d queues", name, r.Queues)
		}
		names = append(names, name)
	}
	const bar = 14 // points
	height := vg.Points(float64(80 + 22*len(values)))
	if len(values) > 0 {
		chart, err := plotter.NewBarChart(values, vg.Points(bar))
		if err != nil {
			return err
		}
		chart.Horizontal = true
		chart.Color, chart.LineStyle.Width = color.RGBA{0x1b, 0x5e, 0x8c, 0xff}, 0
		p.Add(chart)
		p.NominalY(names...)
	}
	canvas := vgsvg.New(vg.Points(640), height)
	p.Draw(draw.New(canvas))
	_, err := canvas.WriteTo(out)
	return err
}
