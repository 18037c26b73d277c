package report

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"loam/test/bench/plan"
	"loam/test/bench/subject"
)

// hopCurve draws the cost of a packet by batch size, with level lines for the
// shapes that have none.
func hopCurve(r *plan.Results) (*plot.Plot, vg.Length, error) {
	var batches plotter.XYs
	levels := map[string]float64{}
	for _, h := range r.Hops {
		if h.Batch > 1 {
			batches = append(batches, plotter.XY{X: float64(h.Batch), Y: h.NS})
		} else {
			levels[h.Shape] = h.NS
		}
	}
	if len(batches) == 0 {
		return nil, 0, nil
	}
	p := newPlot()
	p.X.Label.Text, p.Y.Label.Text = "packets in a batch", "ns a packet, four layers"
	first, last := batches[0].X, batches[len(batches)-1].X
	dashes := [][]vg.Length{{vg.Points(6), vg.Points(3)}, {vg.Points(2), vg.Points(3)}, {vg.Points(6), vg.Points(3), vg.Points(2), vg.Points(3)}}
	drawn := 0
	for _, h := range r.Hops {
		ns, ok := levels[h.Shape]
		if !ok || h.Batch > 1 {
			continue
		}
		line, err := plotter.NewLine(plotter.XYs{{X: first, Y: ns}, {X: last, Y: ns}})
		if err != nil {
			return nil, 0, err
		}
		line.Color, line.Width, line.Dashes = color.Gray{0x60}, vg.Points(1.2), dashes[drawn%len(dashes)]
		drawn++
		p.Add(line)
		p.Legend.Add(h.Shape, line)
	}
	if err := addCurve(p, "a batch a channel a layer", batches, colours[subject.Loam], shapes[subject.Loam]); err != nil {
		return nil, 0, err
	}
	logScale(&p.X)
	logScale(&p.Y)
	var ticks []plot.Tick
	for _, b := range batches {
		ticks = append(ticks, plot.Tick{Value: b.X, Label: fmt.Sprint(b.X)})
	}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	return p, 9 * vg.Centimeter, nil
}
