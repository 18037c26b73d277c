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
		Short: "Receive what loam gen sends, and tell what became of it",
		Long: `Sink is the other end of "loam gen": it counts the frames that carry a tag, and
tells for each flow what was lost, came twice or out of order, and how long it
took. Latency is from the sender's clock to this machine's, so it means something
between machines whose clocks agree, and on one machine.

With --reflect tagged UDP is sent back, and "loam gen --rx" on the interface that
it was sent by tells the time there and back, by one clock.

A flow has three numbers: the stream, the sender's queue, the flow. Frames that
were lost after the last one that arrived are not known here: the sender's count
tells. Each run of a sender has a number of its own, so several may send to one sink. The kernel and others on the machine go on receiving as before, but with xdp and
tc: these take away all IP that may carry a tag, which ARP and ICMPv6 do not, and count
nothing else. tc leaves frames of a VLAN, and several that come as one, to the kernel,
and says how many.

With --device-time the latency ends when the device saw the frame, and not when the
kernel did, if the device has a clock. It is switched on for all frames, and off at the
end, for which privileges are kept; a command that is killed leaves it on.`,
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
	flags.StringVar(&f.receiver.Interface, "dev", "", "the interface, `IF`")
	flags.StringVar(&f.method, "method", "ring", "how to receive: ring, packet, xdp or tc")
	flags.DurationVar(&f.time, "time", 0, "end after this `time` (default: with Ctrl-C)")
	flags.BoolVar(&f.receiver.Promiscuous, "promiscuous", false, "take frames to any address, as long as the command runs")
	flags.BoolVar(&f.reflect, "reflect", false, "send tagged UDP back, for the time there and back: see loam gen --rx")
	flags.BoolVar(&f.receiver.DeviceTime, "device-time", false, "take the device's times of frames, where it has a clock (methods ring and packet)")
	flags.BoolVar(&f.keep, "keep-privileges", false, "stay root after set-up")
	f.viewFlags.register(cmd)
	return cmd
}

// open opens a sender of whole frames.
func open(name, dev string) (method.Sender, error) {
	m, err := method.ByName(name)
	if err != nil {
		return nil, err
	}
	return m.Open(method.Config{Interface: dev})
}

// listen opens the receivers. If the device has no time stamps, it uses the kernel's receive times.
func (f *sinkFlags) listen() ([]method.Receiver, error) {
	r, err := listen(f.method, f.receiver)
	if errors.Is(err, hwtime.ErrNone) {
		fmt.Fprintf(os.Stderr, "loam: %v: the kernel's are used\n", err)
		f.receiver.DeviceTime = false
		return listen(f.method, f.receiver)
	}
	return r, err
}

// receive runs the sink until ctx is done, the time is over, or the interface has been removed. A receiver need not
// notice a removed interface.
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
