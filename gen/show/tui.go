package show

import (
	"fmt"
	"io"
	"strings"

	tea "charm.land/bubbletea/v2"

	"loam/gen"
)

// Live is a view of the whole terminal that is drawn anew with each state; q or
// Ctrl-C ends the run. Who has it calls Show on the main goroutine.
type Live struct {
	program *tea.Program
	out     io.Writer
	began   chan struct{} // closed when there is a terminal to draw on
}

// NewLive makes the view. stop is called when the user wants the run to end.
func NewLive(in io.Reader, out io.Writer, stop func()) *Live {
	began := make(chan struct{})
	s := screen{stop: stop, begin: func() { close(began) }}
	return &Live{tea.NewProgram(s, tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler()), out, began}
}

// Show draws until Finish is called. An error before Began is closed says that there is no
// terminal.
func (l *Live) Show() error {
	_, err := l.program.Run()
	return err
}

// Began is closed when Show has a terminal.
func (l *Live) Began() <-chan struct{} { return l.began }

// Update implements View.
func (l *Live) Update(s State) { l.program.Send(s) }

// Finish implements View: the screen is given back, and the table stays on it.
func (l *Live) Finish(r Result) error {
	l.program.Quit()
	l.program.Wait()
	return Table(l.out, r)
}

// screen is the model of the view.
type screen struct {
	State
	history []float64 // frames a second, the latest last
	width   int       // of the terminal in characters, 0: it has not said
	height  int
	begin   func() // called once, at the beginning
	stop    func()
	ending  bool
}

// widest is how many seconds the chart shows.
const widest = 60

// Init implements tea.Model.
func (s screen) Init() tea.Cmd {
	s.begin()
	return nil
}

// Update implements tea.Model.
func (s screen) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case State:
		s.State = m
		if m.Sent != nil && !m.Sent.Last {
			s.history = append(s.history, m.Sent.Total.PPS)
			s.history = s.history[max(0, len(s.history)-widest):]
		}
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
	case tea.KeyPressMsg:
		if k := m.String(); k == "q" || k == "ctrl+c" || k == "esc" {
			s.ending = true
			s.stop()
		}
	}
	return s, nil
}

// View implements tea.Model.
func (s screen) View() tea.View {
	if s.Sent == nil && s.Received == nil {
		return tea.NewView("") // it may end with an error before there is anything to see
	}
	width, height := s.width, s.height
	if width == 0 { // the terminal has not said
		width, height = usualWidth, usualHeight
	}
	below := s.below(width)
	lines := s.above(width, height-len(below))
	return tea.NewView(strings.Join(append(lines, below...), "\n"))
}

// Of a terminal, in characters, that does not tell its size.
const usualWidth, usualHeight = 80, 24

// column is one of the table of streams.
type column struct {
	name  string
	width int
	value func(*gen.Flow) string
}

// columns are in the order of their weight: the last are left out first. Their widths
// have room for a space in front.
var columns = []column{
	{"rate", 12, func(f *gen.Flow) string { return Rate(f.PPS) }},
	{"frames", 15, func(f *gen.Flow) string { return count(f.Frames) }},
	{"layer 2", 13, func(f *gen.Flow) string { return Bits(f.L2Bits) }},
	{"layer 1", 13, func(f *gen.Flow) string { return Bits(f.L1Bits) }},
}

// leastName is how much of a stream's name is shown at least, and margin what is left free
// in front of all lines.
const leastName, margin = 10, 2

// above is what is sent: as many streams and columns as there is room for.
func (s screen) above(width, height int) []string {
	if s.Sent == nil {
		return nil
	}
	shown, left := 0, width-margin-leastName
	for shown < len(columns) && columns[shown].width <= left {
		left -= columns[shown].width
		shown++
	}
	name := leastName + max(0, left)
	row := func(first string, cell func(column) string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "  %-*.*s", name, name, first)
		for _, c := range columns[:shown] {
			fmt.Fprintf(&b, "%*s", c.width, cell(c))
		}
		return b.String()
	}
	lines := []string{"  " + clock(s.Sent.Elapsed), row("stream", func(c column) string { return c.name })}
	streams := s.Sent.Streams
	const beside = 3 // time, head, and how many are left out
	if room := max(1, height-beside); len(streams) > room {
		streams = streams[:room]
	}
	for i := range streams {
		lines = append(lines, row(streams[i].Name, func(c column) string { return c.value(&streams[i]) }))
	}
	if n := len(s.Sent.Streams) - len(streams); n > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", n))
	}
	if len(lines)+2 <= height {
		h := s.history[max(0, len(s.history)-max(0, width-margin)):]
		lines = append(lines, "", "  "+bars(h))
	}
	return lines
}

// below is what is received, and how to end.
func (s screen) below(width int) (lines []string) {
	if r := s.Received; r != nil {
		c := &r.Total
		lines = append(lines, "")
		lines = append(lines, wrap(width, "received "+count(c.Received), "without a tag "+count(r.Other), "lost "+count(c.Lost),
			"twice "+count(c.Duplicates), "reordered "+count(c.Reordered), "dropped by our ring "+count(r.Dropped))...)
		if l := c.Latency; l.Count > 0 {
			lines = append(lines, wrap(width, "latency: least "+span(l.Min), "median "+span(l.P50), "99 % "+span(l.P99),
				"99.9 % "+span(l.P999), "most "+span(l.Max), "jitter "+span(c.Jitter))...)
		}
	}
	if s.ending {
		return append(lines, "", "  ending ...")
	}
	return append(lines, "", "  q ends the run")
}

// wrap writes items behind one another, into lines that are no wider than width if an item is not.
func wrap(width int, items ...string) (lines []string) {
	line := ""
	for _, item := range items {
		switch {
		case line == "":
			line = "  " + item
		case len(line)+3+len(item) <= width:
			line += "   " + item
		default:
			lines, line = append(lines, line), "  "+item
		}
	}
	return append(lines, line)
}

// bars draws values as blocks of eight heights, against the highest.
func bars(values []float64) string {
	const blocks = "▁▂▃▄▅▆▇█"
	top := 0.0
	for _, v := range values {
		top = max(top, v)
	}
	var b strings.Builder
	for _, v := range values {
		i := 0
		if top > 0 {
			i = int(v / top * 7.99)
		}
		b.WriteRune([]rune(blocks)[i])
	}
	return b.String()
}
