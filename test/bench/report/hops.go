package report

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"loam/test/bench/plan"
	"loam/test/bench/subject"
)

// hopCurve draws the cost of a packet by batch size, and horizontal lines for the shapes without
// batches.
func hopCurve(r *plan.Results) (*chart, error) {
	var batches plotter.XYs
	for _, h := range r.Hops {
		if h.Batch > 1 {
			batches = append(batches, plotter.XY{X: math.Log2(float64(h.Batch)), Y: h.NS})
		}
	}
	if len(batches) == 0 {
		return nil, nil
	}
	c := newChart("packets in a batch", "ns a packet, four layers")
	first, last := batches[0].X, batches[len(batches)-1].X
	dashes := [][]vg.Length{{vg.Points(6), vg.Points(3)}, {vg.Points(2), vg.Points(3)}, {vg.Points(6), vg.Points(3), vg.Points(2), vg.Points(3)}}
	lines := 0
	for _, h := range r.Hops {
		if h.Batch > 1 {
			continue
		}
		line, err := plotter.NewLine(plotter.XYs{{X: first, Y: h.NS}, {X: last, Y: h.NS}})
		if err != nil {
			return nil, err
		}
		line.Color, line.Width, line.Dashes = color.Gray{0x60}, vg.Points(1.2), dashes[lines%len(dashes)]
		lines++
		c.plot.Add(line)
		c.legend.Add(h.Brief, line)
	}
	if err := c.curve("batches", batches, colours[subject.Loam], glyphs[subject.Loam]); err != nil {
		return nil, err
	}
	var ticks []plot.Tick
	for _, b := range batches {
		ticks = append(ticks, plot.Tick{Value: b.X, Label: plain(math.Exp2(b.X))})
	}
	c.plot.X.Tick.Marker = plot.ConstantTicks(ticks)
	c.plot.Y.Min = 0
	return c, nil
}
