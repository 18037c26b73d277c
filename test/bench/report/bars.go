package report

import (
	"slices"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	share "loam/internal/chart"
	"loam/test/bench/plan"
)

// Sizes of the chart's parts in points.
const (
	barWidth  = 10.0
	barGap    = 14.0 // distance between two groups of bars
	axisSpace = 48.0 // room for the axis below the bars
)

// bars draws the rows of a group that have the given unit. Each row is a group of horizontal bars, one
// for each subject, with its figure next to it.
func bars(group, unit, label string) func(*plan.Results) (*chart, error) {
	return func(r *plan.Results) (*chart, error) {
		rows, names := barRows(r, group, unit)
		if len(rows) == 0 {
			return nil, nil
		}
		c := newChart(label, "")
		most := 0.0
		for i, name := range names {
			offset := barWidth * (float64(len(names)-1)/2 - float64(i))
			longest, err := c.bars(rows, name, offset)
			if err != nil {
				return nil, err
			}
			most = max(most, longest)
		}
		var titles []string
		for _, o := range rows {
			titles = append(titles, o.Title)
		}
		share.Names(c.plot, titles...)
		c.plot.X.Min, c.plot.X.Max = 0, most*1.12 // leaves room for the figures on the right
		c.plot.Y.Min, c.plot.Y.Max = -0.5, float64(len(rows))-0.5
		c.height = vg.Points(float64(len(rows))*(barWidth*float64(len(names))+barGap) + axisSpace)
		return c, nil
	}
}

// barRows returns the rows to draw, from the bottom up, and the subjects with figures in them.
func barRows(r *plan.Results, group, unit string) (rows []plan.Outcome, names []string) {
	for _, o := range slices.Backward(r.Rows) {
		if o.Group == group && o.Unit == unit && len(o.Figures) > 0 {
			rows = append(rows, o)
		}
	}
	for _, name := range order {
		if slices.ContainsFunc(rows, func(o plan.Outcome) bool { _, ok := o.Of(name); return ok }) {
			names = append(names, name)
		}
	}
	return rows, names
}

// bars adds the bars of one subject, and returns the largest figure. offset is the distance in points
// of each bar above the middle of its row.
func (c *chart) bars(rows []plan.Outcome, name string, offset float64) (longest float64, err error) {
	var values plotter.Values
	text := plotter.XYLabels{}
	for i, o := range rows {
		f, ok := o.Of(name)
		values = append(values, f.Median)
		if ok {
			text.XYs = append(text.XYs, plotter.XY{X: f.Median, Y: float64(i)})
			text.Labels = append(text.Labels, number(f.Median))
		}
	}
	chart, err := plotter.NewBarChart(values, vg.Points(barWidth))
	if err != nil {
		return 0, err
	}
	chart.Horizontal = true
	chart.Color = colours[name]
	chart.LineStyle.Width = 0
	chart.Offset = vg.Points(offset)
	labels, err := plotter.NewLabels(text)
	if err != nil {
		return 0, err
	}
	for i := range labels.TextStyle {
		labels.TextStyle[i].Font.Size = vg.Points(8)
		labels.TextStyle[i].YAlign = draw.YCenter
	}
	labels.Offset = vg.Point{X: vg.Points(3), Y: vg.Points(offset)}
	c.plot.Add(chart, labels)
	c.legend.Add(title(name), chart)
	return slices.Max(values), nil
}
