package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"loam/gen"
	"loam/gen/frame"
	"loam/gen/guard"
	"loam/gen/method"
	"loam/gen/pace"
	"loam/gen/show"
	"loam/gen/sink"
)

// newGenCommand returns the command of the packet engine. Without a subcommand it sends one stream. Each subcommand
// has a file gen_NAME.go.
func newGenCommand() *cobra.Command {
	var f genFlags
	cmd := &cobra.Command{
		Use:   "gen --dev IF --dst IP",
		Short: "Send packets at a rate, and measure loss and latency",
		Long: `Gen sends frames by a method and at a rate. It prints a line each second, and at the end a
table with the rate that was reached and the spread of the gaps between frames.

  loam gen --dev eth0 --dst 10.0.0.2 --rate 1Mpps --size 64 --time 10s
  loam gen --dev eth0 --dst 10.0.0.0/24 --method xdp --rate max --queues 4
  loam gen --dev eth0 --template 'eth; vlan id=7; ip6 dst=2001:db8::2; tcp flags=S dport=80' --vary ip6.src=2001:db8:1::/64

Frames carry a tag with a sequence number and the time. "loam gen sink" at the other end, or
--rx in the same process, counts lost, duplicated and reordered frames, and measures latency.

Methods, from ordinary sockets down to the driver:

` + methodList() + `
By default, frames have the source addresses of the interface, and the next hop is resolved by
ARP or Neighbor Discovery. --vary makes a field change from frame to frame. It takes 1024-2047,
1024+7, 53,123,443, 10.0.0.0/8, random or random:RANGE, for every field of a template: eth.dst,
vlan.id, ip.src, ip.ttl, udp.dport ...

Sizes count the frame check sequence: 64 is the smallest frame of Ethernet. Rates
are in frames a second (pps), in bits of frames a second (bps), in bits of the wire
a second (bpsL1, with preamble and gaps), or a share of the speed of the line (%).

tcpdump on this interface does not see frames that the methods xdp and tc send. It sees frames
of the methods packet and ring only with --qdisc. Capture at the far end instead.

The rate can be changed while frames are sent: by keys with --tui, by HTTP with --control.

More than 1000 frames a second to public addresses need --public. The command drops root's
privileges after set-up. However it ends, the interface is unchanged afterwards.`,
		Args:             knownCommand,
		PersistentPreRun: func(cmd *cobra.Command, _ []string) { endBySecondSignal(cmd.Context()) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.options()
			if err != nil {
				return err
			}
			return f.send(cmd, c)
		},
	}
	f.register(cmd)
	cmd.AddCommand(newGenSink(), newGenReplay(), newGenRun(), newGenBench(), newGenRFC2544(), newGenProbe())
	return cmd
}

// methodList returns a line for each method, for the help text.
func methodList() string {
	var b strings.Builder
	for _, m := range method.All() {
		fmt.Fprintf(&b, "  %-8s %s\n", m.Name, m.Summary)
	}
	return b.String()
}

// genFlags are the flags of loam gen.
type genFlags struct {
	viewFlags
	flags  *pflag.FlagSet
	config gen.Config
	stream gen.Stream
	layers templateFlags
	rx     string // interface to receive on, too; "": none
	keep   bool   // keep the privileges of root
}

// templateFlags are the flags that describe the frames of a stream.
type templateFlags struct {
	text     string // the template's text; "": a template for UDP
	dst, src string
	settings []setting // settings of fields that have their own flags
	vary     []setting
}

// setting is a field and its pattern.
type setting struct{ field, pattern string }

func (f *genFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.flags = flags
	flags.SortFlags = false
	c, s := &f.config, &f.stream
	s.Name = "stream 1"
	c.Streams = nil
	s.Rate = pace.Rate{PerSecond: 1000}
	flags.StringVar(&c.Method, "method", "ring", "method `M` by which frames are sent: see above")
	flags.StringVar(&c.Interface, "dev", "", "interface `IF` on which frames are sent")
	f.layers.register(flags)
	parsedFlag(flags, &c.NextHop, parseMAC, "dst-mac", "", "`MAC` address of the next hop (default: resolved)")
	parsedFlag(flags, &s.Rate, pace.ParseRate, "rate", "1kpps", "send at `RATE`: 1Mpps, 2Gbps, 10GbpsL1, 50% of the line, or max")
	parsedFlag(flags, &s.Spacing, pace.ParseSpacing, "spacing", "even", "spacing of frames: even, poisson, or burst:`N`, which is N frames at once and then a gap")
	parsedFlag(flags, &s.Sizes, frame.ParseSizes, "size", "", "size of frames, `N`, A-B, random:A-B, imix or imix:SIZE=WEIGHT,... (default: the smallest possible)")
	flags.IntVar(&s.Flows, "flows", 1, "number of source ports, used in turn; the frames of each port are numbered as a flow of their own")
	flags.Uint64Var(&s.Count, "count", 0, "end after this number of frames")
	flags.DurationVar(&c.Time, "time", 0, "end after this `time`, such as 10s (default: at Ctrl-C)")
	flags.DurationVar(&c.Patience, "patience", method.DefaultPatience, "time in which no frame could be sent, for example because the link is down, after which the run fails")
	flags.IntVar(&c.Queues, "queues", 1, "number of senders that run at the same time, each with its own thread and processor")
	flags.BoolVar(&c.Float, "float", false, "let the kernel choose the threads' processors, for a machine on which other programs run")
	flags.IntVar(&c.Batch, "batch", 0, "maximum number of frames that are passed to the method at once (default: 64 to 4096, by method; with tags at most 256)")
	flags.StringVar(&f.rx, "rx", "", "receive on interface `IF`, too, and report lost frames")
	flags.Uint64Var(&s.Seed, "seed", 0, "seed of random values: the same seed gives the same frames (default: a new seed for each run)")
	flags.BoolVar(&s.Bare, "bare", false, "send frames without the tag by which loam gen sink counts them")
	flags.BoolVar(&c.Qdisc, "qdisc", false, "send through the queueing discipline (methods packet and ring)")
	flags.BoolVar(&c.Plain, "plain", false, "put a single datagram into each message (method mmsg), even if the kernel could split larger messages")
	flags.BoolVar(&c.LeaveChecksum, "leave-checksum", false, "leave the checksum of UDP or TCP to the device (methods packet and ring)")
	flags.BoolVar(&c.Public, "public", false, "allow public addresses at any rate")
	flags.BoolVar(&f.keep, "keep-privileges", false, "stay root after set-up")
	f.viewFlags.register(cmd)
	f.viewFlags.registerControl(cmd)
}

func (f *templateFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.dst, "dst", "", "destination address `IP`, or a prefix whose addresses are used in turn")
	flags.StringVar(&f.src, "src", "", "source address `IP` (default: the interface's)")
	for _, one := range []struct{ flag, field, usage string }{
		{"dport", "dport", "destination `port` (default: 9, discard)"},
		{"sport", "sport", "source `port`"},
	} {
		listFlag(flags, &f.settings, func(s string) (setting, error) { return setting{one.field, s}, nil }, one.flag, one.usage)
	}
	listFlag(flags, &f.settings, func(s string) (setting, error) {
		_, err := parseMAC(s)
		return setting{"eth.src", s}, err
	}, "src-mac", "our `MAC` (default: the interface's)")
	flags.StringVar(&f.text, "template", "", "headers of the frames: `LAYERS` separated by semicolons, or @FILE (default: eth; ip; udp)")
	listFlag(flags, &f.vary, parseSetting, "vary", "change a field from frame to frame, `FIELD=PATTERN` (repeat for more)")
}

// parseSetting parses FIELD=PATTERN.
func parseSetting(s string) (setting, error) {
	field, pattern, ok := strings.Cut(s, "=")
	if !ok {
		return setting{}, &usageError{s + " is no setting", "write --vary FIELD=PATTERN, such as udp.sport=1024-2047"}
	}
	return setting{field, pattern}, nil
}

// options returns the configuration of the run. It checks only those conditions that package gen cannot check.
func (f *genFlags) options() (gen.Config, error) {
	c, s := f.config, f.stream
	if c.Interface == "" {
		return c, &usageError{"no interface is given", "say --dev IF; ip link lists those that there are"}
	}
	if _, err := method.ByName(c.Method); err != nil {
		return c, &usageError{err.Error(), "see loam gen --help"}
	}
	if c.Queues < 1 || c.Batch < 0 || s.Flows < 1 {
		return c, &usageError{"--queues, --batch and --flows count from 1", "leave them out for one queue, one flow"}
	}
	if err := endsAfter(f.flags, c.Time, "send until Ctrl-C"); err != nil {
		return c, err
	}
	if c.Patience <= 0 || c.Patience > gen.MaxTime {
		return c, &usageError{fmt.Sprintf("--patience %v is no time to wait", c.Patience), "give a time such as 30s, or leave it out for a second"}
	}
	if s.Seed == 0 {
		s.Seed = rand.Uint64()
	}
	var err error
	s.Template, err = f.layers.template()
	c.Streams = []gen.Stream{s}
	return c, err
}

// template returns the template of the stream.
func (f *templateFlags) template() (*frame.Template, error) {
	v6, err := isIPv6(f.dst)
	if err != nil {
		return nil, err
	}
	t := frame.UDP(v6)
	switch {
	case f.text != "":
		if t, err = parseTemplate(f.text); err != nil {
			return nil, err
		}
		v6 = t.V6()
	case f.dst == "":
		return nil, &usageError{"no destination is given", "say --dst IP, or --template LAYERS"}
	}
	ip, transport := "ip", "udp"
	if v6 {
		ip = "ip6"
	}
	for _, kind := range []string{"tcp", "sctp"} {
		if t.Has(kind) && !t.Has(transport) {
			transport = kind
		}
	}
	all := []setting{{ip + ".dst", f.dst}, {ip + ".src", f.src}}
	if f.dst == "" {
		all = all[1:]
	}
	if f.src == "" {
		all = all[:len(all)-1]
	}
	for _, s := range f.settings {
		if !strings.Contains(s.field, ".") {
			s.field = transport + "." + s.field
		}
		all = append(all, s)
	}
	for _, s := range append(all, f.vary...) {
		if err := t.Set(s.field, s.pattern); err != nil {
			return nil, &usageError{err.Error(), "see loam gen --help"}
		}
	}
	return t, nil
}

// parseTemplate parses the value of --template: layers, or @ and the name of a file with layers.
func parseTemplate(text string) (*frame.Template, error) {
	if name, isFile := strings.CutPrefix(text, "@"); isFile {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, &usageError{"--template " + err.Error(), "give a file that can be read"}
		}
		text = string(b)
	}
	t, err := frame.Parse(text)
	if err != nil {
		return nil, &usageError{"--template: " + err.Error(), "see loam gen --help"}
	}
	return t, nil
}

// isIPv6 reports whether a destination is an IPv6 address or prefix.
func isIPv6(dst string) (v6 bool, err error) {
	if dst == "" {
		return false, nil
	}
	if p, err := netip.ParsePrefix(dst); err == nil {
		return p.Addr().Is6(), nil
	}
	a, err := netip.ParseAddr(dst)
	if err != nil {
		return false, &usageError{fmt.Sprintf("--dst %s is no address", dst), "write an address such as 10.0.0.2, or a prefix such as 10.0.0.0/24"}
	}
	return a.Is6(), nil
}

// send runs the engine, and displays the run as viewFlags select.
func (f *genFlags) send(cmd *cobra.Command, c gen.Config) error {
	c.Control = f.control
	return f.watch(cmd, func(ctx context.Context, v show.View) (show.Result, error) {
		return sendAndReceive(ctx, c, f.rx, f.keep, v)
	})
}

// sendAndReceive runs the sender with configuration c. If rx is not empty, it also runs a receiver on the interface rx.
func sendAndReceive(ctx context.Context, c gen.Config, rx string, keep bool, v show.View) (show.Result, error) {
	var s *sink.Sink
	if rx != "" {
		rs, err := listen("ring", method.Config{Interface: rx})
		if err != nil {
			return show.NewResult(nil, nil), genError(err, false)
		}
		s = sink.Start(rs...)
	}
	c.Observe = func(sample gen.Sample) {
		state := show.State{Sent: &sample}
		if s != nil {
			r := s.Report()
			state.Received = &r
		}
		v.Update(state)
	}
	if !keep {
		c.Ready = guard.Drop
	}
	sent, err := gen.Run(ctx, c)
	var received *sink.Report
	if s != nil {
		if err == nil {
			time.Sleep(lateness) // frames that are still on their way may arrive
		}
		r, e := s.Stop()
		received, err = &r, errors.Join(err, e)
	}
	if sent.Total.Frames == 0 && err != nil {
		return show.NewResult(nil, nil), genError(err, false)
	}
	if err == nil {
		err = refused(sent.Counters)
	}
	return show.NewResult(&sent, received), genError(err, true)
}

// refused returns an error if the method has refused frames.
func refused(c method.Counters) error {
	if c.Refused == 0 {
		return nil
	}
	return fmt.Errorf("%d frames were refused: they are longer than the interface takes, or make no sense to the kernel", c.Refused)
}

// endsAfter returns an error if --time is given and not positive. The text otherwise describes the command without
// --time.
func endsAfter(flags *pflag.FlagSet, d time.Duration, otherwise string) error {
	if d > 0 || d == 0 && !flags.Changed("time") {
		return nil
	}
	return &usageError{fmt.Sprintf("--time %v is no time", d), "leave it out to " + otherwise}
}

// lateness is the time that a sink waits for the last frames after sending has ended.
const lateness = 300 * time.Millisecond

// listen opens the receivers of a method.
func listen(name string, c method.Config) ([]method.Receiver, error) {
	m, err := method.ByName(name)
	if err != nil {
		return nil, err
	}
	if c.DeviceTime && (name == "xdp" || name == "tc") {
		return nil, fmt.Errorf("the method %s does not tell times of a device: ring and packet do", name)
	}
	return sink.Open(m, c)
}

// genError converts an error of a run into a usageError if the user can correct it. Every error that occurs before the
// first frame is caused by the command line.
func genError(err error, started bool) error {
	var public *guard.Refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &public):
		return &usageError{err.Error(), "use a lower --rate, or --public if they are yours to test"}
	case !started || errors.Is(err, gen.ErrConfig):
		return &usageError{wrong: err.Error()}
	}
	return err
}
