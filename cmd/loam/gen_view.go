package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"loam/gen"
	"loam/gen/control"
	"loam/gen/show"
)

// viewFlags are the flags that select how a run of the packet engine is shown.
type viewFlags struct {
	json, tui  bool
	prom, plot string
	// control is set for runs whose rate can change during the run, and nil for other runs.
	control *gen.Control
	http    string // address of the control server; "": none
}

func (f *viewFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.tui, "tui", false, "show the run live, on the whole terminal")
	flags.BoolVar(&f.json, "json", false, "print JSON lines for programs")
	flags.StringVar(&f.prom, "prom", "", "serve metrics for Prometheus at `ADDR`, such as 127.0.0.1:9100, with the path /metrics")
	flags.StringVar(&f.plot, "plot", "", "draw the rates over the time into `FILE`, as SVG")
}

// registerControl registers the flag --control, for a run whose rate can change.
func (f *viewFlags) registerControl(cmd *cobra.Command) {
	f.control = gen.NewControl()
	cmd.Flags().StringVar(&f.http, "control", "", "change rates by HTTP at `ADDR`, such as 127.0.0.1:9101: GET /rate, and PUT /rate with {\"scale\": 0.5} or {\"rate\": \"2Mpps\"}")
}

// watch calls the function work and displays the run. With --tui, the function runs in a
// goroutine of its own, because the terminal view needs the main goroutine.
func (f *viewFlags) watch(cmd *cobra.Command, work func(context.Context, show.View) (show.Result, error)) error {
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	views, live, err := f.open(cmd, stop)
	if err != nil {
		return err
	}
	do := func() error {
		result, err := work(ctx, views)
		if e := views.Finish(result); err == nil && e != nil {
			err = e
		}
		return err
	}
	if live == nil {
		return do()
	}
	// done has a capacity of one: the goroutine sends the result of work. It starts work when the terminal view is
	// ready.
	done, blind := make(chan error, 1), make(chan struct{})
	go func() {
		select {
		case <-live.Began():
			done <- do()
		case <-blind:
			done <- nil
		}
	}()
	err = live.Show()
	if err != nil {
		close(blind)
	}
	stop() // ends work, since the user may have closed the view
	if e := <-done; err == nil {
		return e
	}
	return &usageError{"--tui has no terminal to show it on: " + err.Error(), "run it in a terminal, or leave --tui out"}
}

// open creates the views of a run. It opens their files and sockets now, because the process may give up its privileges
// later.
func (f *viewFlags) open(cmd *cobra.Command, stop func()) (views show.All, live *show.Live, err error) {
	out := cmd.OutOrStdout()
	switch {
	case f.json && f.tui:
		return nil, nil, &usageError{"--json and --tui want the same terminal", "leave one of them out"}
	case f.json:
		views = append(views, show.JSON{W: out})
	case f.tui:
		live = show.NewLive(cmd.InOrStdin(), out, f.control, stop)
		views = append(views, live)
	default:
		views = append(views, show.Text{W: out})
	}
	if f.prom != "" {
		p, err := show.NewPrometheus(f.prom)
		if err != nil {
			return nil, nil, &usageError{fmt.Sprintf("--prom %s: %v", f.prom, err), "give an address of this machine with a free port, such as 127.0.0.1:9100"}
		}
		views = append(views, p)
	}
	if f.http != "" {
		s, err := control.Listen(f.http, f.control)
		if err != nil {
			return nil, nil, &usageError{fmt.Sprintf("--control %s: %v", f.http, err), "give an address of this machine with a free port, such as 127.0.0.1:9101"}
		}
		views = append(views, s)
	}
	if f.plot != "" {
		file, err := createFile("--plot", f.plot)
		if err != nil {
			return nil, nil, err
		}
		views = append(views, &show.Plot{W: file})
	}
	return views, live, nil
}

// createFile creates the file named by a flag.
func createFile(flag, name string) (io.WriteCloser, error) {
	file, err := os.Create(name)
	if err != nil {
		return nil, &usageError{flag + " " + err.Error(), "give a file that can be written"}
	}
	return file, nil
}
