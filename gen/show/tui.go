package show

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"loam/gen"
	"loam/gen/sink"
)

// Live is a full-screen view in the terminal, which is redrawn for each state. The keys q and Ctrl-C end the run. The
// caller calls Show in the main goroutine.
type Live struct {
	program *tea.Program
	out     io.Writer
	began   chan struct{} // closed when the terminal is ready
}

// NewLive returns a Live view. The view calls stop when the user ends the run. control is used for the keys that change
// the rate; if it is nil, there are no such keys.
func NewLive(in io.Reader, out io.Writer, control *gen.Control, stop func()) *Live {
	began := make(chan struct{})
	s := screen{stop: stop, begin: func() { close(began) }, keys: keys{control: control}}
	return &Live{tea.NewProgram(s, tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler()), out, began}
}

// Show draws the view until Finish is called. If it returns an error before Began is closed, there is no usable
// terminal.
func (l *Live) Show() error {
	_, err := l.program.Run()
	return err
}

// Began returns a channel that is closed when the terminal of Show is ready.
func (l *Live) Began() <-chan struct{} { return l.began }

// Update implements View.
func (l *Live) Update(s State) { l.program.Send(s) }

// Finish implements View. It restores the screen and writes the table of results.
func (l *Live) Finish(r Result) error {
	l.program.Quit()
	l.program.Wait()
	return Table(l.out, r)
}

// screen is the tea.Model of the view.
type screen struct {
	State
	history []float64 // frames per second, the latest last
	width   int       // width of the terminal in characters; 0: not known yet
	height  int
	begin   func() // called once at the start
	stop    func()
	ending  bool
	keys    keys
}

// widest is the maximum number of values in the chart, one per second.
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
		switch {
		case m.Sent != nil && !m.Sent.Last:
			s.history = append(s.history, m.Sent.Total.PPS)
		case m.Sent == nil && m.Received != nil:
			s.history = append(s.history, m.Received.Recent.PPS)
		}
		s.history = s.history[max(0, len(s.history)-widest):]
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
	case tea.KeyPressMsg:
		switch k := m.String(); {
		case k == "ctrl+c", !s.keys.typing && (k == "q" || k == "esc"):
			s.ending = true
			s.stop()
		default:
			s.keys.press(k, m.Text)
		}
	}
	return s, nil
}

// View implements tea.Model.
func (s screen) View() tea.View {
	if s.Sent == nil && s.Received == nil {
		return tea.NewView("") // the run may fail before the first state arrives
	}
	width, height := s.width, s.height
	if width == 0 { // the terminal has not reported its size yet
		width, height = usualWidth, usualHeight
	}
	below := s.below(width, height)
	lines := s.above(width, height-len(below))
	return tea.NewView(strings.Join(append(lines, below...), "\n"))
}

// Size of the terminal in characters that is assumed if the terminal does not report its size.
const usualWidth, usualHeight = 80, 24

// column is a column of the table of streams.
type column struct {
	name  string
	width int
	value func(*gen.Flow) string
}

// columns are ordered by importance: if the terminal is too narrow, the last ones are omitted. A width is in characters
// and includes a leading space.
var columns = []column{
	{"rate", 12, func(f *gen.Flow) string { return Rate(f.PPS) }},
	{"asked", 12, func(f *gen.Flow) string { return f.Asked }},
	{"frames", 15, func(f *gen.Flow) string { return count(f.Frames) }},
	{"layer 2", 13, func(f *gen.Flow) string { return Bits(f.L2Bits) }},
	{"layer 1", 13, func(f *gen.Flow) string { return Bits(f.L1Bits) }},
}

// leastName is the minimum width of a stream's name, and margin the number of blanks at the left of all lines, in
// characters.
const leastName, margin = 10, 2

// above returns the lines about sent frames, with as many streams and columns as there is space for. If the run only
// receives, it returns the time and the chart of the rate.
func (s screen) above(width, height int) []string {
	if s.Sent == nil {
		return s.chart([]string{"  " + clock(s.Received.Elapsed)}, width, height)
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
	const beside = 3 // lines besides the streams: time, header, and the number of omitted streams
	if room := max(1, height-beside); len(streams) > room {
		streams = streams[:room]
	}
	for i := range streams {
		lines = append(lines, row(streams[i].Name, func(c column) string { return c.value(&streams[i]) }))
	}
	if n := len(s.Sent.Streams) - len(streams); n > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", n))
	}
	return s.chart(lines, width, height)
}

// chart adds the chart of the rate to lines if height allows two more lines.
func (s screen) chart(lines []string, width, height int) []string {
	if len(lines)+2 > height {
		return lines
	}
	h := s.history[max(0, len(s.history)-max(0, width-margin)):]
	return append(lines, "", "  "+bars(h))
}

// leastAbove is the minimum number of lines for the part about sent frames.
const leastAbove = 4

// below returns the lines about received frames, and the line with the keys. If the terminal has few lines, the
// latencies of the last second and the histogram are omitted.
func (s screen) below(width, height int) (lines []string) {
	foot := append([]string{""}, s.keys.lines(width)...)
	if s.ending {
		foot = []string{"", "  ending ..."}
	}
	r := s.Received
	if r == nil {
		return foot
	}
	c := &r.Total
	lines = append([]string{""}, wrap(width, "received "+count(c.Received), Rate(r.Recent.PPS), Bits(r.Recent.L2Bits), "without a tag "+count(r.Other),
		"lost "+count(c.Lost), "twice "+count(c.Duplicates), "reordered "+count(c.Reordered), "dropped by our ring "+count(r.Dropped))...)
	l := c.Latency
	if l.Count == 0 {
		return append(lines, foot...)
	}
	lines = append(lines, wrap(width, "latency: least "+Span(l.Min), "median "+Span(l.P50), "99 % "+Span(l.P99),
		"99.9 % "+Span(l.P999), "most "+Span(l.Max), "jitter "+Span(c.Jitter))...)
	for _, more := range [][]string{recent(width, &r.Recent.Latency), {"  " + spark(&l)}} {
		if len(more) > 0 && len(lines)+len(more)+len(foot)+leastAbove <= height && utf8.RuneCountInString(more[0]) <= width {
			lines = append(lines, more...)
		}
	}
	return append(lines, foot...)
}

// recent returns the latencies since the previous state, or nothing if there are none.
func recent(width int, l *sink.Latency) []string {
	if l.Count == 0 {
		return nil
	}
	return wrap(width, "this second: median "+Span(l.P50), "99 % "+Span(l.P99), "99.9 % "+Span(l.P999), "most "+Span(l.Max))
}

// wrap joins items into lines of at most width characters. An item that is longer gets a line of its own.
func wrap(width int, items ...string) []string { return join(width, "   ", items) }

// join is like wrap, but puts the text between (a separator) between items.
func join(width int, between string, items []string) (lines []string) {
	line := ""
	for _, item := range items {
		switch {
		case line == "":
			line = "  " + item
		case utf8.RuneCountInString(line+between+item) <= width:
			line += between + item
		default:
			lines, line = append(lines, line), "  "+item
		}
	}
	return append(lines, line)
}

// bars draws values as blocks of eight heights, scaled to the highest value.
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
