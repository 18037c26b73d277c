package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"loam/gen"
	"loam/gen/frame"
	"loam/gen/guard"
	"loam/gen/method"
	"loam/gen/pace"
	"loam/gen/replay"
	"loam/gen/show"
)

// replayFlags are the flags of loam gen replay.
type replayFlags struct {
	viewFlags
	flags        *pflag.FlagSet
	config       replay.Config
	sender       method.Config
	method       string
	timing       string
	public, keep bool
}

func newGenReplay() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay FILE.pcapng --dev IF",
		Short: "Send the frames of a capture",
		Long: `Replay sends the frames of a pcap or pcapng file, which may be compressed by gzip,
unchanged: with their original gaps, or at a rate. The file - is standard input. A pipe is read
to its end first.

  loam gen replay all.pcapng --dev eth0
  loam gen replay all.pcapng --dev eth0 --rate 100kpps --loops 10
  loam gen replay all.pcapng --dev eth0 --speed 2
  loam gen replay one.pcapng --dev eth0 --rate 50kpps --time 1m --map 192.168.1.7=10.0.0.0/16 --map-port 40000=1024-65535

With --map and --map-port a connection of the capture becomes many: each loop has its own
addresses and ports, in both directions, and the checksums fit.

Frames that were captured in part are sent as captured. If a file ends within a frame, all frames
before it are sent. The command reports both. Frames that are too long for the interface are
refused and counted.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &usageError{fmt.Sprintf("one file is wanted, and %d are given", len(args)), "say loam gen replay FILE.pcapng --dev IF"}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	f.flags = flags
	c, rewrite := &f.config, &f.config.Rewrite
	flags.StringVar(&f.sender.Interface, "dev", "", "interface `IF` on which frames are sent")
	flags.StringVar(&f.method, "method", "ring", "method by which frames are sent: ring, packet, xdp, tc, pcap or tap")
	flags.StringVar(&f.timing, "timing", "", "original: with the gaps of the capture, which is the default without --rate")
	parsedFlag(flags, &c.Rate, pace.ParseRate, "rate", "", "send at `RATE` instead: 1Mpps, 2Gbps, 10GbpsL1 or max")
	flags.Float64Var(&c.Speed, "speed", 1, "with the original timing: number by which the gaps are divided")
	flags.IntVar(&c.Loops, "loops", 1, "number of times that the file is sent; 0: until --time or Ctrl-C")
	flags.DurationVar(&c.Time, "time", 0, "end after this `time`; without --loops, the file is sent again until then")
	listFlag(flags, &rewrite.Addresses, replay.ParseAddressMap, "map", "replace addresses, `FROM=TO`, addresses or prefixes; if TO is larger, each loop uses the next part of TO (repeat for more)")
	listFlag(flags, &rewrite.Ports, replay.ParsePortMap, "map-port", "replace ports of UDP and TCP in the same way, `FROM=TO`, ports or FIRST-LAST (repeat for more)")
	parsedFlag(flags, &rewrite.Dst, parseMAC, "dst-mac", "", "send all frames to this `MAC`")
	parsedFlag(flags, &rewrite.Src, parseMAC, "src-mac", "", "send all frames from this `MAC`")
	flags.BoolVar(&f.sender.Qdisc, "qdisc", false, "send through the queueing discipline (methods packet and ring)")
	flags.BoolVar(&f.public, "public", false, "allow public addresses at any rate")
	flags.BoolVar(&f.keep, "keep-privileges", false, "stay root after set-up")
	f.viewFlags.register(cmd)
	f.viewFlags.registerControl(cmd)
	return cmd
}

// options returns the configuration of the replay and its method. It checks only those conditions that package replay
// cannot check.
func (f *replayFlags) options() (c replay.Config, m method.Method, err error) {
	dev := f.sender.Interface
	if dev == "" {
		return c, m, &usageError{"no interface is given", "say --dev IF; ip link lists those that there are"}
	}
	if m, err = method.ByName(f.method); err != nil {
		return c, m, &usageError{err.Error(), "see loam gen replay --help"}
	}
	if m.Layer != method.Frame {
		return c, m, &usageError{fmt.Sprintf("the method %s does not send whole frames", f.method), "use ring, packet, xdp, tc, pcap or tap"}
	}
	c = f.config
	byRate := f.flags.Changed("rate")
	switch {
	case f.sender.Qdisc && !m.HasQdisc():
		return c, m, &usageError{fmt.Sprintf("--qdisc has no effect with the method %s", f.method), "use packet or ring, or leave it out"}
	case f.timing != "" && f.timing != "original":
		return c, m, &usageError{fmt.Sprintf("there is no timing %q", f.timing), "use --timing original, or --rate"}
	case f.timing != "" && byRate:
		return c, m, &usageError{"--timing and --rate exclude one another", "leave one of them out"}
	case !(c.Speed > 0 && c.Speed <= 1e6):
		return c, m, &usageError{fmt.Sprintf("--speed %v", c.Speed), "give a number above 0, to 1000000"}
	case c.Loops < 0:
		return c, m, &usageError{fmt.Sprintf("--loops %d is no number of times", c.Loops), "use 1 or more, or 0 to send until --time or Ctrl-C"}
	}
	if err := endsAfter(f.flags, c.Time, "send until the end of the file"); err != nil {
		return c, m, err
	}
	if c.Time > 0 && !f.flags.Changed("loops") {
		c.Loops = 0
	}
	c.Interface, c.Control = dev, f.control
	if byRate {
		c.Speed = 0
		if c.Rate, err = gen.OnLine(c.Rate, dev); err != nil {
			return c, m, &usageError{wrong: err.Error()}
		}
	}
	return c, m, nil
}

// run executes the command on the capture file name; "-" is the standard input.
func (f *replayFlags) run(cmd *cobra.Command, name string) error {
	c, m, err := f.options()
	if err != nil {
		return err
	}
	file, err := openCapture(cmd.InOrStdin(), name)
	if err != nil {
		return &usageError{err.Error(), "give a file that can be read"}
	}
	defer file.Close()
	c.Open = func() (*replay.Source, error) {
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		return replay.NewSource(file)
	}
	survey, err := f.look(&c, name)
	if err != nil {
		return err
	}
	if survey.Frames == 0 {
		return &usageError{wrong: name + " has no frames"}
	}
	f.remark(cmd.ErrOrStderr(), name, &c, &survey)
	return f.watch(cmd, func(ctx context.Context, v show.View) (show.Result, error) { return f.send(ctx, c, m, survey, v) })
}

// openCapture opens the capture file. Input that can be read only once, such as a pipe, is copied to an unnamed
// temporary file.
func openCapture(in io.Reader, name string) (*os.File, error) {
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		info, err := file.Stat()
		switch {
		case err == nil && info.IsDir():
			err = fmt.Errorf("%s is a directory", name)
		case err == nil && info.Mode().IsRegular():
			return file, nil
		}
		defer file.Close()
		if err != nil {
			return nil, err
		}
		in = file
	}
	spool, err := os.CreateTemp("", "loam-replay-")
	if err != nil {
		return nil, err
	}
	os.Remove(spool.Name())
	if _, err := io.Copy(spool, in); err != nil {
		spool.Close()
		return nil, err
	}
	return spool, nil
}

// longSpan is a limit: if a replay will take longer, the command prints how to make it shorter.
const longSpan = time.Hour

// remark prints how the sent frames will differ from the captured frames.
func (f *replayFlags) remark(w io.Writer, name string, c *replay.Config, v *replay.Survey) {
	if v.Broken {
		fmt.Fprintf(w, "loam: %s ends within a frame, as a capture does that was interrupted: the %d before it are sent\n", name, v.Frames)
	}
	if v.Cut > 0 {
		fmt.Fprintf(w, "loam: %d of %d frames were captured in part, and are sent so\n", v.Cut, v.Frames)
	}
	if v.Skipped > 0 {
		fmt.Fprintf(w, "loam: %d records are no frames of Ethernet, too short or too long, and are left out\n", v.Skipped)
	}
	if span := time.Duration(float64(v.Span) / max(c.Speed, 1e-6)); c.Speed > 0 && span > longSpan {
		fmt.Fprintf(w, "loam: the capture takes %v as it is; --speed or --rate make that shorter\n", span.Round(time.Second))
	}
}

// look reads the whole capture once and returns its summary. It returns an error if frames would be sent to public
// addresses without permission.
func (f *replayFlags) look(c *replay.Config, name string) (v replay.Survey, err error) {
	s, err := c.Open()
	if err == nil {
		v, err = replay.Look(s, &c.Rewrite)
	}
	if err != nil {
		return v, &usageError{name + ": " + err.Error(), "give a pcap or pcapng file of Ethernet frames"}
	}
	if v.Frames > 0 {
		c.MeanSize = float64(v.Bytes)/float64(v.Frames) + frame.FCSLen
	}
	pps := v.PPS() * c.Speed
	if c.Speed == 0 {
		pps = c.Rate.FramesPerSecond(c.MeanSize)
	}
	if v.Public == "" || f.public {
		return v, nil
	}
	c.Limit = func(pps float64) error { return guard.Check(v.Public, pps) }
	return v, genError(c.Limit(pps), false)
}

// send opens the sender, drops privileges unless --keep-privileges is given, and replays the capture.
func (f *replayFlags) send(ctx context.Context, c replay.Config, m method.Method, survey replay.Survey, v show.View) (show.Result, error) {
	none := show.NewResult(nil, nil)
	var err error
	sender := f.sender
	sender.Size = max(survey.Longest, frame.MinSize)
	if c.Sender, err = m.Open(sender); err != nil {
		return none, genError(err, false)
	}
	defer c.Sender.Close()
	if !f.keep {
		if err := guard.Drop(); err != nil {
			return none, genError(err, false)
		}
	}
	c.Interval = time.Second
	c.Observe = func(s gen.Sample) { v.Update(show.State{Sent: &s}) }
	report, err := replay.Run(ctx, c)
	report.Method, report.Interface = m.Name, sender.Interface
	if err == nil {
		err = refused(report.Counters)
	}
	return show.NewResult(&report, nil), err
}
