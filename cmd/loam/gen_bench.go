package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"loam/gen"
	"loam/gen/bench"
	"loam/gen/frame"
	"loam/gen/guard"
)

// genBenchFlags are the flags of loam gen bench.
type genBenchFlags struct {
	config  gen.Config
	options bench.Options
	dst     string
	methods []string
	size    int
	queues  int           // the command measures one queue and this number of queues
	time    time.Duration // total time of all measurements of one method
	plot    string
	json    bool
}

func newGenBench() *cobra.Command {
	var f genBenchFlags
	cmd := &cobra.Command{
		Use:   "bench --dev IF --dst IP",
		Short: "Compare all sending methods",
		Long: `Bench sends the same frame by every method, as fast as possible, and prints the rates at
which frames arrived. For a veth it reads the counter of the peer, in any namespace, and
otherwise the counter of the interface. The methods take turns in several rounds. The
table has the median, the minimum and the maximum.

The figures of a veth depend on its peer, because the peer's work is done on the sender's
processor. The earlier the peer drops frames, the less of its work is measured. The method
tap is measured on an interface of its own, which the command removes.

The command keeps its privileges, because it opens the methods one after another.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.config.Interface, "dev", "", "interface `IF` on which frames are sent")
	flags.StringVar(&f.dst, "dst", "", "destination address `IP`")
	parsedFlag(flags, &f.config.NextHop, parseMAC, "dst-mac", "", "`MAC` address of the next hop (default: resolved)")
	flags.StringSliceVar(&f.methods, "methods", nil, "measure only the methods with these `names`, separated by commas")
	flags.IntVar(&f.size, "size", frame.MinSize, "size of frames, FCS included")
	flags.IntVar(&f.queues, "queues", 1, "if more than 1, measure each method with one queue and with this number of queues")
	flags.BoolVar(&f.config.Float, "float", false, "let the kernel choose the threads' processors")
	flags.DurationVar(&f.time, "time", 5*time.Second, "total `time` of the measurements of each method")
	flags.IntVar(&f.options.Rounds, "rounds", 5, "number of turns among which that time is divided")
	flags.BoolVar(&f.json, "json", false, "print a JSON object for programs")
	flags.StringVar(&f.plot, "plot", "", "draw bars into `FILE`, as SVG")
	flags.BoolVar(&f.config.Public, "public", false, "allow a public address")
	return cmd
}

// check returns the destination. It checks only those conditions that package bench cannot check.
func (f *genBenchFlags) check() (dst netip.Addr, err error) {
	if f.config.Interface == "" {
		return dst, &usageError{"no interface is given", "say --dev IF; ip link lists those that there are"}
	}
	if dst, err = netip.ParseAddr(f.dst); err != nil {
		return dst, &usageError{fmt.Sprintf("--dst %q is no address", f.dst), "write an address such as 10.0.0.2"}
	}
	switch {
	case f.size < frame.MinSize || f.size > 9018:
		return dst, &usageError{fmt.Sprintf("--size %d is no size of a frame", f.size), "give 64 to 9018"}
	case f.queues < 1 || f.queues > 32:
		return dst, &usageError{fmt.Sprintf("--queues %d", f.queues), "give 1 to 32"}
	case f.options.Rounds < 1 || f.time <= 0:
		return dst, &usageError{"--rounds and --time must be above zero", "leave them out"}
	}
	if !f.config.Public {
		if err := guard.Check(f.dst, guard.ModestRate+1); err != nil {
			return dst, &usageError{err.Error(), "use --public if it is yours to test"}
		}
	}
	return dst, nil
}

// run executes the command. If the counter of the peer cannot be read, the interface's own counter is used.
func (f *genBenchFlags) run(cmd *cobra.Command) error {
	dst, err := f.check()
	if err != nil {
		return err
	}
	s, err := bench.Stream(f.dst, f.size, dst.Is6())
	if err != nil {
		return &usageError{wrong: err.Error()}
	}
	queues := []int{1}
	if f.queues > 1 {
		queues = append(queues, f.queues)
	}
	f.config.Streams = []gen.Stream{s}
	all, err := bench.Methods(f.config, f.methods, queues)
	if err != nil {
		return &usageError{err.Error(), "see loam gen bench --help"}
	}
	o, dev := &f.options, f.config.Interface
	o.Slice, o.Warm = f.time/time.Duration(o.Rounds), 100*time.Millisecond
	counted := "the peer's own counter"
	o.Peer, err = bench.Peer(dev)
	if errors.Is(err, bench.ErrNoPeer) {
		o.Peer, counted = bench.Own(dev), "the counter of "+dev+" itself"
	} else if err != nil {
		return &usageError{wrong: err.Error()}
	}
	if !f.json {
		o.Progress = func(text string) { fmt.Fprintln(cmd.ErrOrStderr(), text) }
	}
	rows, err := bench.Run(cmd.Context(), all, *o)
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	if nothing(rows) {
		return &usageError{wrong: rows[0].Error}
	}
	return f.show(cmd, rows, counted)
}

// nothing reports whether every row has an error instead of a measurement.
func nothing(rows []bench.Row) bool {
	for i := range rows {
		if rows[i].Error == "" {
			return false
		}
	}
	return true
}

// show writes the results as a table or as JSON, and draws the plot. counted describes the counter that was used.
func (f *genBenchFlags) show(cmd *cobra.Command, rows []bench.Row, counted string) error {
	out := cmd.OutOrStdout()
	if f.plot != "" {
		file, err := createFile("--plot", f.plot)
		if err != nil {
			return err
		}
		defer file.Close()
		title := fmt.Sprintf("frames of %d bytes on %s", f.size, f.config.Interface)
		if err := bench.Plot(file, title, rows); err != nil {
			return err
		}
	}
	if f.json {
		return json.NewEncoder(out).Encode(rows)
	}
	base := "udp"
	if len(f.methods) > 0 && !slices.Contains(f.methods, base) {
		base = f.methods[0]
	}
	fmt.Fprintf(out, "frames of %d bytes, by %s, in %d turns of %v\n\n", f.size, counted, f.options.Rounds, f.options.Slice)
	return bench.Table(out, rows, f.size, base)
}
