package report

import (
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"loam/test/bench/plan"
)

const (
	barWidth = 9.0  // points
	barGap   = 12.0 // between rows
)

// bars draws the rows of a group that have the given unit: a row of horizontal
// bars for each, a bar for each subject, its figure beside it.
func bars(group, unit, label string) func(*plan.Results) (*plot.Plot, vg.Length, error) {
	return func(r *plan.Results) (*plot.Plot, vg.Length, error) {
		rows, names := barRows(r, group, unit)
		if len(rows) == 0 {
			return nil, 0, nil
		}
		p := newPlot()
		p.X.Label.Text = label
		p.Legend.Top = false
		var titles []string
		most := 0.0
		for _, o := range rows {
			titles = append(titles, o.Title)
		}
		for i, name := range names {
			values, labels := barValues(rows, name)
			most = max(most, slices.Max(values))
			chart, err := plotter.NewBarChart(values, vg.Points(barWidth))
			if err != nil {
				return nil, 0, err
			}
			chart.Horizontal = true
			chart.Color = colours[name]
			chart.LineStyle.Width = 0
			offset := barWidth * (float64(len(names)-1)/2 - float64(i))
			chart.Offset = vg.Points(offset)
			p.Add(chart)
			p.Legend.Add(title(name), chart)
			if err := barLabels(p, values, labels, offset); err != nil {
				return nil, 0, err
			}
		}
		p.NominalY(titles...)
		p.X.Min, p.X.Max = 0, most*1.12
		height := vg.Points(float64(len(rows))*(barWidth*float64(len(names))+barGap) + 60)
		return p, height, nil
	}
}

// barRows are the rows to draw, from the bottom up, and the subjects that have
// figures there.
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

// barValues are a subject's bars; one that it has no figure for is empty.
func barValues(rows []plan.Outcome, name string) (values plotter.Values, labels []string) {
	for _, o := range rows {
		f, ok := o.Of(name)
		values = append(values, f.Median)
		if ok {
			labels = append(labels, number(f.Median))
		} else {
			labels = append(labels, "")
		}
	}
	return values, labels
}

// barLabels writes the figures to the right of their bars.
func barLabels(p *plot.Plot, values plotter.Values, text []string, offset float64) error {
	at := plotter.XYLabels{Labels: text}
	for i, v := range values {
		at.XYs = append(at.XYs, plotter.XY{X: v, Y: float64(i)})
	}
	labels, err := plotter.NewLabels(at)
	if err != nil {
		return err
	}
	for i := range labels.TextStyle {
		labels.TextStyle[i].Font.Size = vg.Points(8)
		labels.TextStyle[i].YAlign = draw.YCenter
	}
	labels.Offset = vg.Point{X: vg.Points(3), Y: vg.Points(offset)}
	p.Add(labels)
	return nil
}
