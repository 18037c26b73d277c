package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"loam/gen"
	"loam/gen/frame"
	"loam/gen/guard"
	"loam/gen/method"
	"loam/gen/pace"
	"loam/gen/replay"
	"loam/gen/show"
)

// replayFlags are the flags of loam gen replay as given by the user.
type replayFlags struct {
	viewFlags
	dev, method, rate, timing string
	speed                     float64
	loops                     int
	qdisc, public, keep       bool
}

func newGenReplay() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay FILE.pcapng --dev IF",
		Short: "Send what was captured",
		Long: `Replay sends the frames of a pcap or pcapng file, which may be compressed by gzip,
as they are: with the gaps that they had, or at a rate. The file - is standard input,
which is read to its end first, as other pipes are.

  loam gen replay all.pcapng --dev eth0
  loam gen replay all.pcapng --dev eth0 --rate 100kpps --loops 10
  loam gen replay all.pcapng --dev eth0 --speed 2

Frames that were captured in part are sent as far as they are there, and of a file
that ends within a frame all before that; both is told. Frames that are longer than
the interface takes are refused and counted.`,
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
	flags.StringVar(&f.dev, "dev", "", "the interface, `IF`")
	flags.StringVar(&f.method, "method", "ring", "how to send: ring, packet, xdp, tc, pcap or tap")
	flags.StringVar(&f.timing, "timing", "", "original: with the gaps that the frames had (what is done without --rate)")
	flags.StringVar(&f.rate, "rate", "", "how fast instead, `RATE`: 1Mpps, 2Gbps, 10GbpsL1 or max")
	flags.Float64Var(&f.speed, "speed", 1, "with the original timing: gaps so many times shorter")
	flags.IntVar(&f.loops, "loops", 1, "send the file so many times")
	flags.BoolVar(&f.qdisc, "qdisc", false, "send through the queueing discipline (methods packet and ring)")
	flags.BoolVar(&f.public, "public", false, "allow public addresses at any rate")
	flags.BoolVar(&f.keep, "keep-privileges", false, "stay root after set-up")
	f.viewFlags.register(cmd)
	return cmd
}

// config checks the flags and converts them to a replay.Config and a method.
func (f *replayFlags) config() (c replay.Config, m method.Method, err error) {
	if f.dev == "" {
		return c, m, &usageError{"no interface is given", "say --dev IF; ip link lists those that there are"}
	}
	if m, err = method.ByName(f.method); err != nil {
		return c, m, &usageError{err.Error(), "see loam gen replay --help"}
	}
	if m.Layer != method.Frame {
		return c, m, &usageError{fmt.Sprintf("the method %s does not send whole frames", f.method), "use ring, packet, xdp, tc, pcap or tap"}
	}
	switch {
	case f.qdisc && !m.HasQdisc():
		return c, m, &usageError{fmt.Sprintf("--qdisc has no effect with the method %s", f.method), "use packet or ring, or leave it out"}
	case f.timing != "" && f.timing != "original":
		return c, m, &usageError{fmt.Sprintf("there is no timing %q", f.timing), "use --timing original, or --rate"}
	case f.timing != "" && f.rate != "":
		return c, m, &usageError{"--timing and --rate exclude one another", "leave one of them out"}
	case !(f.speed > 0 && f.speed <= 1e6):
		return c, m, &usageError{fmt.Sprintf("--speed %v", f.speed), "give a number above 0, to 1000000"}
	case f.loops < 1:
		return c, m, &usageError{fmt.Sprintf("--loops %d sends nothing", f.loops), "use 1 or more"}
	}
	c = replay.Config{Speed: f.speed, Loops: f.loops}
	if f.rate != "" {
		c.Speed = 0
		if c.Rate, err = pace.ParseRate(f.rate); err != nil {
			return c, m, &usageError{"--rate " + err.Error(), "see loam gen replay --help"}
		}
		if c.Rate, err = gen.OnLine(c.Rate, f.dev); err != nil {
			return c, m, &usageError{wrong: err.Error()}
		}
	}
	return c, m, nil
}

// run executes the command on the capture file name; "-" is the standard input.
func (f *replayFlags) run(cmd *cobra.Command, name string) error {
	c, m, err := f.config()
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

// longSpan is the longest replay for which no remark is printed.
const longSpan = time.Hour

// remark prints how the sent frames will differ from those on the captured wire.
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

// look reads the file once. It returns an error if frames would be sent to public addresses without permission.
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
	if v.Public != "" && !f.public {
		return v, genError(guard.Check(v.Public, pps), false)
	}
	return v, nil
}

// send opens the sender, drops privileges unless --keep-privileges is given, and replays the capture.
func (f *replayFlags) send(ctx context.Context, c replay.Config, m method.Method, survey replay.Survey, v show.View) (show.Result, error) {
	none := show.NewResult(nil, nil)
	var err error
	if c.Sender, err = m.Open(method.Config{Interface: f.dev, Size: max(survey.Longest, frame.MinSize), Qdisc: f.qdisc}); err != nil {
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
	report.Method, report.Interface = m.Name, f.dev
	if err == nil {
		err = refused(report.Counters)
	}
	return show.NewResult(&report, nil), err
}
