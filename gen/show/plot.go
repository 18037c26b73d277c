package show

import (
	"image/color"
	"io"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"loam/internal/chart"
)

// Plot is a View that draws the rates over time as SVG at the end of a run.
type Plot struct {
	// W must be opened before privileges are dropped. Finish closes it.
	W        io.WriteCloser
	sent     plotter.XYs
	received plotter.XYs
	before   uint64 // number of frames received before the previous state
	at       float64
}

// Colours that can be distinguished by people with red-green colour blindness, and in grey.
var (
	sentColour     = color.RGBA{0x1b, 0x5e, 0x8c, 0xff}
	receivedColour = color.RGBA{0xe6, 0x8a, 0x1f, 0xff}
)

// Update implements View.
func (p *Plot) Update(s State) {
	if s.Sent != nil && !s.Sent.Last {
		p.sent = append(p.sent, plotter.XY{X: s.Sent.Elapsed.Seconds(), Y: s.Sent.Total.PPS})
	}
	if s.Received == nil {
		return
	}
	now, n := s.Received.Elapsed.Seconds(), s.Received.Total.Received+s.Received.Other
	if passed := now - p.at; passed > 0 && (s.Sent == nil || !s.Sent.Last) {
		p.received = append(p.received, plotter.XY{X: now, Y: float64(n-p.before) / passed})
		p.before, p.at = n, now
	}
}

// Finish implements View.
func (p *Plot) Finish(Result) error {
	defer p.W.Close()
	c := chart.New()
	c.X.Label.Text, c.Y.Label.Text = "seconds", "frames a second"
	c.Y.Min = 0
	for _, s := range []struct {
		name   string
		points plotter.XYs
		colour color.Color
	}{{"sent", p.sent, sentColour}, {"received", p.received, receivedColour}} {
		if len(s.points) == 0 {
			continue
		}
		line, err := plotter.NewLine(s.points)
		if err != nil {
			return err
		}
		line.Color, line.Width = s.colour, vg.Points(1.5)
		c.Add(line)
		chart.Entry(c, s.name, line)
	}
	return chart.Write(p.W, c, vg.Points(640), vg.Points(320))
}
