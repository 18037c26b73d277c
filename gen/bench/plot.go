//go:build linux

package bench

import (
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"loam/internal/chart"
)

// Plot draws the rows as a bar chart in SVG, with the first row on top.
func Plot(out io.Writer, title string, rows []Row) error {
	p := chart.New()
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
	const bar = 14 // height of a bar in points
	height := vg.Points(float64(80 + 22*len(values)))
	if len(values) > 0 {
		bars, err := plotter.NewBarChart(values, vg.Points(bar))
		if err != nil {
			return err
		}
		bars.Horizontal = true
		bars.Color, bars.LineStyle.Width = color.RGBA{0x1b, 0x5e, 0x8c, 0xff}, 0
		p.Add(bars)
		chart.Names(p, names...)
	}
	return chart.Write(out, p, vg.Points(640), height)
}
