package main

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"loam/gen/frame"
	"loam/gen/rfc2544"
	"loam/gen/show"
	"loam/wire"
)

// rfcFlags are the flags of loam gen rfc2544.
type rfcFlags struct {
	options       rfc2544.Options
	dst, template string
	json          bool
}

func newGenRFC2544() *cobra.Command {
	var f rfcFlags
	cmd := &cobra.Command{
		Use:   "rfc2544 --tx IF --rx IF",
		Short: "Test a device between two interfaces: throughput, latency, loss, back-to-back",
		Long: `Rfc2544 runs the tests of RFC 2544 against a device that connects two interfaces of
this machine: a bridge, a router, a cable. For each size of frames it
searches for the highest rate without loss (section 26.1), measures the latency at
that rate (26.2), the loss at parts of the highest rate (26.3), and the longest
burst without loss (26.4, RFC 9004).

Frames are UDP from 198.18.0.1 to 198.19.0.1, the addresses of RFC 2544, and go to
the Ethernet address of --rx, as through a bridge. For a router, give --dst: the next
hop is resolved, or given by --dst-mac.

The RFC asks for trials of 60 seconds and 20 repetitions: --trial 60s --repeats 20.
The report contains these parameters, and every trial in which this machine's own sender
or receiver was too slow. The command keeps its privileges, because each trial opens its
sockets again.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.options.TX, "tx", "", "interface `IF` on which frames are sent")
	flags.StringVar(&f.options.RX, "rx", "", "interface `IF` on which frames are received")
	flags.StringVar(&f.options.Method, "method", "ring", "method by which frames are sent")
	flags.StringVar(&f.options.ReceiveMethod, "rx-method", "ring", "method by which frames are received: ring, packet, xdp or tc")
	flags.StringVar(&f.dst, "dst", "", "destination address `IP`, if the device is a router")
	parsedFlag(flags, &f.options.NextHop, parseMAC, "dst-mac", "", "the next hop's `MAC`")
	flags.StringVar(&f.template, "template", "", "headers of the frames, `LAYERS` or @FILE, as for loam gen")
	flags.IntSliceVar(&f.options.Sizes, "sizes", rfc2544.Sizes, "sizes of frames, FCS included")
	flags.StringSliceVar(&f.options.Tests, "tests", rfc2544.Tests, "tests to run")
	flags.DurationVar(&f.options.Trial, "trial", rfc2544.DefaultTrial, "duration of a trial")
	flags.DurationVar(&f.options.Settle, "settle", rfc2544.DefaultSettle, "time for the device to empty its queues after a trial")
	flags.Float64Var(&f.options.Top, "top", 0, "the highest rate to try, in frames a second (default: what this machine sends)")
	flags.Float64Var(&f.options.Resolution, "resolution", rfc2544.DefaultResolution, "accuracy of the throughput, as a fraction of the highest rate")
	flags.IntVar(&f.options.Repeats, "repeats", rfc2544.DefaultRepeats, "number of measurements of latency, and of bursts")
	flags.BoolVar(&f.json, "json", false, "print a JSON object for programs")
	flags.BoolVar(&f.options.Public, "public", false, "allow public addresses")
	return cmd
}

// check returns the options. It checks only those conditions that package rfc2544 cannot check.
func (f *rfcFlags) check() (o rfc2544.Options, err error) {
	o = f.options
	switch {
	case o.TX == "" || o.RX == "":
		return o, &usageError{"two interfaces are wanted", "say --tx IF --rx IF, with the device in between"}
	case o.Trial <= 0 || o.Settle < 0 || o.Repeats < 1:
		return o, &usageError{"--trial and --repeats must be above zero", "leave them out"}
	case o.Top < 0 || !(o.Resolution > 0 && o.Resolution < 1):
		return o, &usageError{"--top is below zero, or --resolution not between 0 and 1", "leave them out"}
	}
	for _, s := range o.Sizes {
		if s < frame.MinSize || s > 9018 {
			return o, &usageError{fmt.Sprintf("--sizes %d is no size of a frame", s), "give sizes from 64 to 9018"}
		}
	}
	if o.Template, err = f.layers(); err != nil {
		return o, err
	}
	if o.NextHop.IsZero() && f.dst == "" && f.template == "" {
		i, err := net.InterfaceByName(o.RX)
		if err != nil {
			return o, &usageError{wrong: fmt.Sprintf("there is no interface %q: ip link lists those that there are", o.RX)}
		}
		if len(i.HardwareAddr) == len(o.NextHop) {
			o.NextHop = wire.MAC(i.HardwareAddr)
		}
	}
	return o, nil
}

// layers returns the template of the test frames. Its default addresses are in the range that is reserved for
// benchmarks (RFC 2544 appendix C).
func (f *rfcFlags) layers() (*frame.Template, error) {
	text := f.template
	switch {
	case text != "":
	case f.dst == "":
		text = "eth; ip src=198.18.0.1 dst=198.19.0.1; udp sport=49184 dport=7"
	case strings.Contains(f.dst, ":"):
		text = "eth; ip6 dst=" + f.dst + "; udp sport=49184 dport=7"
	default:
		text = "eth; ip dst=" + f.dst + "; udp sport=49184 dport=7"
	}
	return parseTemplate(text)
}

// run executes the command. If a test fails with an error, it still prints the results so far.
func (f *rfcFlags) run(cmd *cobra.Command) error {
	o, err := f.check()
	if err != nil {
		return err
	}
	if !f.json {
		o.Progress = func(t rfc2544.Trial) {
			fmt.Fprintf(cmd.ErrOrStderr(), "%-12s %4d bytes  %10s  sent %d, lost %d %s\n", t.Test, t.Size, show.Rate(t.Rate()), t.Sent, t.Sent-min(t.Sent, t.Received), t.Slow)
		}
	}
	r, err := rfc2544.Run(cmd.Context(), o)
	if len(r.Rows) == 0 && err != nil {
		return genError(err, false)
	}
	if f.json {
		if e := json.NewEncoder(cmd.OutOrStdout()).Encode(r); err == nil {
			err = e
		}
		return err
	}
	if e := r.Table(cmd.OutOrStdout()); err == nil {
		err = e
	}
	return err
}
