package report

import (
	"fmt"
	"image/color"
	"math"
	"path/filepath"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"loam/test/bench/plan"
	"loam/test/bench/subject"
)

// picture is a plot that has been written.
type picture struct {
	group string // heading of the section that shows the plot
	title string
	file  string
}

// drawing makes one plot. The function draw returns nil if there are no figures for the
// plot.
type drawing struct {
	picture
	draw func(*plan.Results) (*chart, error)
}

var drawings = []drawing{
	{picture{plan.OverPipe, "Bulk throughput over a pipe", "pipe-bulk.svg"}, bars(plan.OverPipe, "Gb/s", "throughput, Gb/s")},
	{picture{plan.OverPipe, "Ping-pong over a pipe", "pipe-pingpong.svg"}, bars(plan.OverPipe, "µs", "round trip of one byte, µs")},
	{picture{plan.OverTap, "Bulk throughput over a tap", "tap-bulk.svg"}, bars(plan.OverTap, "Gb/s", "throughput, Gb/s")},
	{picture{plan.OverTap, "Ping-pong over a tap", "tap-pingpong.svg"}, bars(plan.OverTap, "µs", "round trip of one byte, µs")},
	{picture{plan.OverVeth, "Bulk throughput on an interface", "veth-bulk.svg"}, bars(plan.OverVeth, "Gb/s", "throughput, Gb/s")},
	{picture{plan.Echo, "Latency by pings at once", "echo.svg"}, latencies},
	{picture{plan.Clients, "Throughput by clients at once", "clients.svg"}, throughputs},
	{picture{plan.OnQ35, "Start to the first answer in a virtual machine", "start.svg"}, bars(plan.OnQ35, "ms", "ms")},
	{picture{plan.OnQ35, "Requests in a virtual machine", "requests.svg"}, bars(plan.OnQ35, "per s", "requests per second")},
	{picture{plan.OnQ35, "Writes in a virtual machine", "writes.svg"}, bars(plan.OnQ35, "ns", "a write of one byte, ns")},
	{picture{plan.OnQ35, "Memory and image", "memory.svg"}, bars(plan.OnQ35, "MiB", "MiB")},
	{picture{plan.ByGateway, "Requests through the gateway", "gateway-requests.svg"}, bars(plan.ByGateway, "per s", "requests per second")},
	{picture{plan.ByGateway, "Writes as a process", "process-writes.svg"}, bars(plan.ByGateway, "ns", "a write of one byte, ns")},
	{picture{plan.ByWire, "Requests on a tap", "wire-requests.svg"}, bars(plan.ByWire, "per s", "requests per second")},
	{picture{hopsTitle, "Cost of a packet by batch size", "hops.svg"}, hopCurve},
}

// plots draws all plots for which there are figures.
func plots(dir string, r *plan.Results) ([]picture, error) {
	var out []picture
	for _, d := range drawings {
		c, err := d.draw(r)
		if err == nil && c != nil {
			err = c.save(filepath.Join(dir, d.file))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.file, err)
		}
		if c != nil {
			out = append(out, d.picture)
		}
	}
	return out, nil
}

// colours can be distinguished by colour-blind readers and in greyscale.
var colours = map[string]color.Color{
	subject.Loam:       color.RGBA{0x1b, 0x5e, 0x8c, 0xff},
	subject.LoamPacket: color.RGBA{0x1b, 0x5e, 0x8c, 0xff},
	subject.LoamRing:   color.RGBA{0x5b, 0x9e, 0xc4, 0xff},
	subject.LoamXDP:    color.RGBA{0x0a, 0x2c, 0x45, 0xff},
	subject.LoamRelay:  color.RGBA{0x5b, 0x9e, 0xc4, 0xff},
	subject.GVisor:     color.RGBA{0xe6, 0x8a, 0x1f, 0xff},
	subject.GVisorVnet: color.RGBA{0xf4, 0xc9, 0x8e, 0xff},
	subject.Linux:      color.RGBA{0x9a, 0x9a, 0x9a, 0xff},
	subject.LinuxProxy: color.RGBA{0xc8, 0xc8, 0xc8, 0xff},
}

var glyphs = map[string]draw.GlyphDrawer{
	subject.Loam:       draw.CircleGlyph{},
	subject.GVisor:     draw.SquareGlyph{},
	subject.GVisorVnet: draw.PyramidGlyph{},
	subject.Linux:      draw.CrossGlyph{},
}

// latencies draws the results of the GoNet paper's first experiment (round-trip times of pings), with logarithmic axes.
func latencies(r *plan.Results) (*chart, error) {
	c := newChart("pings at once", "mean time to the reply, µs")
	if drawn, err := c.series(r, plan.Echo, math.Log10); !drawn || err != nil {
		return nil, err
	}
	decades(&c.plot.X)
	decades(&c.plot.Y)
	return c, nil
}

// throughputs draws the results of the GoNet paper's second experiment (throughput of many clients).
func throughputs(r *plan.Results) (*chart, error) {
	c := newChart("clients at once, 4 kB each", "throughput, Mb/s")
	if drawn, err := c.series(r, plan.Clients, linear); !drawn || err != nil {
		return nil, err
	}
	c.plot.X.Min, c.plot.Y.Min = 0, 0
	return c, nil
}

func linear(v float64) float64 { return v }

// series adds a curve for each subject of an experiment, on axes with the given scale.
func (c *chart) series(r *plan.Results, group string, scale func(float64) float64) (drawn bool, err error) {
	for _, name := range order {
		var points plotter.XYs
		for _, o := range r.Rows {
			if f, ok := o.Of(name); ok && o.Group == group && o.AtOnce > 0 {
				points = append(points, plotter.XY{X: scale(float64(o.AtOnce)), Y: scale(f.Median)})
			}
		}
		if len(points) == 0 {
			continue
		}
		drawn = true
		if err := c.curve(title(name), points, colours[name], glyphs[name]); err != nil {
			return false, err
		}
	}
	return drawn, nil
}

func (c *chart) curve(name string, points plotter.XYs, ink color.Color, glyph draw.GlyphDrawer) error {
	line, dots, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Color, line.Width = ink, vg.Points(1.5)
	dots.Color, dots.Shape, dots.Radius = ink, glyph, vg.Points(2.5)
	c.plot.Add(line, dots)
	c.legend.Add(name, line, dots)
	return nil
}
