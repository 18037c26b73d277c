package show

import (
	"fmt"
	"io"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// Live is a view of the whole terminal that is drawn anew with each state; q or
// Ctrl-C ends the run. Who has it calls Show on the main goroutine.
type Live struct {
	program *tea.Program
	out     io.Writer
}

// NewLive makes the view. stop is called when the user wants the run to end.
func NewLive(in io.Reader, out io.Writer, stop func()) *Live {
	return &Live{tea.NewProgram(screen{stop: stop}, tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler()), out}
}

// Show draws until Finish is called.
func (l *Live) Show() error {
	_, err := l.program.Run()
	return err
}

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
	stop    func()
	ending  bool
}

// widest is how many seconds the chart shows.
const widest = 60

// Init implements tea.Model.
func (s screen) Init() tea.Cmd { return nil }

// Update implements tea.Model.
func (s screen) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case State:
		s.State = m
		if m.Sent != nil && !m.Sent.Last {
			s.history = append(s.history, m.Sent.Total.PPS)
			s.history = s.history[max(0, len(s.history)-widest):]
		}
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
	var b strings.Builder
	if s.Sent != nil {
		fmt.Fprintf(&b, "  %s\n\n  %-20s %15s %12s %12s %12s\n", clock(s.Sent.Elapsed), "stream", "frames", "rate", "layer 2", "layer 1")
		for _, f := range s.Sent.Streams {
			fmt.Fprintf(&b, "  %-20.20s %15s %12s %12s %12s\n", f.Name, count(f.Frames), Rate(f.PPS), Bits(f.L2Bits), Bits(f.L1Bits))
		}
		fmt.Fprintf(&b, "\n  %s\n", bars(s.history))
	}
	if r := s.Received; r != nil {
		c := &r.Total
		fmt.Fprintf(&b, "\n  received %s   without a tag %s   lost %s   twice %s   reordered %s   dropped by our ring %s\n",
			count(c.Received), count(r.Other), count(c.Lost), count(c.Duplicates), count(c.Reordered), count(r.Dropped))
		l := c.Latency
		fmt.Fprintf(&b, "  latency: least %s   median %s   99 %% %s   99.9 %% %s   most %s   jitter %s\n",
			span(l.Min), span(l.P50), span(l.P99), span(l.P999), span(l.Max), span(c.Jitter))
	}
	switch {
	case s.ending:
		b.WriteString("\n  ending ...\n")
	case s.Sent != nil || s.Received != nil: // else it may end with an error before there is anything to see
		b.WriteString("\n  q ends the run\n")
	}
	return tea.NewView(b.String())
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
