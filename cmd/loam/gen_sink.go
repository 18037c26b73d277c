package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"

	"loam/gen/guard"
	"loam/gen/hwtime"
	"loam/gen/method"
	"loam/gen/show"
	"loam/gen/sink"
)

// sinkFlags are the flags of loam gen sink.
type sinkFlags struct {
	viewFlags
	receiver method.Config
	method   string
	time     time.Duration
	reflect  bool
	keep     bool
}

func newGenSink() *cobra.Command {
	var f sinkFlags
	cmd := &cobra.Command{
		Use:   "sink --dev IF",
		Short: "Receive the frames of loam gen, and report loss and latency",
		Long: `Sink is the other end of "loam gen". It counts frames with a tag, and reports for each flow how
many were lost, duplicated or reordered, and the latency. Latency is measured between the sender's
clock and this machine's: it is meaningful on one machine, or if the two clocks agree.

With --reflect, UDP datagrams that carry the generator's tag are sent back. "loam gen --rx" on the
sending interface then measures the round-trip time by one clock.

A flow is identified by three numbers: the stream, the sender's queue, the flow. Sink cannot detect that
the last frames of a flow were lost: compare its count with the sender's count. Each run of a sender has
a number of its own, so several senders may use one sink.

With the methods ring and packet, the kernel and other programs still receive the frames. With xdp
and tc, they do not receive IP packets that may carry a tag, and sink counts only these packets; the
kernel still receives ARP and ICMPv6. tc leaves frames with VLAN tags, and frames that segmentation
offload has merged, to the kernel, and reports their number.

With --device-time, latency ends at the hardware timestamp of the frame, if the device has a clock.
The command enables timestamps for all frames and disables them at the end, for which it keeps its
privileges. A command that is killed leaves them enabled.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.receiver.Interface == "" {
				return &usageError{"no interface is given", "say --dev IF; ip link lists those that there are"}
			}
			if err := endsAfter(cmd.Flags(), f.time, "receive until Ctrl-C"); err != nil {
				return err
			}
			return f.watch(cmd, f.receive)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.receiver.Interface, "dev", "", "interface `IF` on which frames are received")
	flags.StringVar(&f.method, "method", "ring", "how to receive: ring, packet, xdp or tc")
	flags.DurationVar(&f.time, "time", 0, "end after this `time` (default: at Ctrl-C)")
	flags.BoolVar(&f.receiver.Promiscuous, "promiscuous", false, "receive frames to any Ethernet address while the command runs")
	flags.BoolVar(&f.reflect, "reflect", false, "send tagged UDP back, to measure round trips: see loam gen --rx")
	flags.BoolVar(&f.receiver.DeviceTime, "device-time", false, "use the device's own receive timestamps, if it has a clock (methods ring and packet)")
	flags.BoolVar(&f.keep, "keep-privileges", false, "stay root after set-up")
	f.viewFlags.register(cmd)
	return cmd
}

// open opens a sender that sends whole Ethernet frames.
func open(name, dev string) (method.Sender, error) {
	m, err := method.ByName(name)
	if err != nil {
		return nil, err
	}
	return m.Open(method.Config{Interface: dev})
}

// listen opens the receivers. If the device cannot time stamp frames, the kernel's receive times are used.
func (f *sinkFlags) listen() ([]method.Receiver, error) {
	r, err := listen(f.method, f.receiver)
	if errors.Is(err, hwtime.ErrNone) {
		fmt.Fprintf(os.Stderr, "loam: %v: the kernel's are used\n", err)
		f.receiver.DeviceTime = false
		return listen(f.method, f.receiver)
	}
	return r, err
}

// receive runs the sink until ctx is done, the given time has passed, or the interface has been removed. It checks
// itself whether the interface still exists, because not every receiver notices.
func (f *sinkFlags) receive(ctx context.Context, v show.View) (show.Result, error) {
	rs, err := f.listen()
	if err != nil {
		return show.NewResult(nil, nil), genError(err, false)
	}
	dev, err := net.InterfaceByName(f.receiver.Interface)
	if err != nil {
		sink.Close(rs)
		return show.NewResult(nil, nil), err
	}
	for i := range rs {
		if !f.reflect {
			break
		}
		tx, err := open("packet", f.receiver.Interface)
		if err != nil {
			sink.Close(rs)
			return show.NewResult(nil, nil), genError(err, false)
		}
		rs[i] = sink.Reflect(rs[i], tx)
	}
	if !f.keep && !f.receiver.DeviceTime {
		if err := guard.Drop(); err != nil {
			sink.Close(rs)
			return show.NewResult(nil, nil), genError(err, false)
		}
	}
	if f.time > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.time)
		defer cancel()
	}
	s := sink.Start(rs...)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			now := s.Report()
			v.Update(show.State{Received: &now})
			if _, e := net.InterfaceByIndex(dev.Index); e == nil && s.Err() == nil {
				continue
			} else if e != nil {
				err = genError(fmt.Errorf("%s is gone", f.receiver.Interface), false)
			}
		case <-ctx.Done():
		}
		last, failed := s.Stop()
		return show.NewResult(nil, &last), errors.Join(failed, err)
	}
}
