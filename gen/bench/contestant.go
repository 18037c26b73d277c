//go:build linux

package bench

import (
	"context"
	"fmt"

	"github.com/vishvananda/netlink"

	"loam/gen"
	"loam/gen/frame"
	"loam/gen/method"
	"loam/wire"
)

// Methods returns a contestant for each method that can send the only stream of the configuration base, and for each
// number of queues. names selects methods by name; nil means all. It returns an error if frames are longer than the
// MTU, because the peer would count their fragments.
func Methods(base gen.Config, names []string, queues []int) ([]Contestant, error) {
	if link, err := netlink.LinkByName(base.Interface); err == nil {
		if size, most := base.Streams[0].Sizes.Max(), link.Attrs().MTU+wire.EthernetLen+frame.FCSLen; size > most {
			return nil, fmt.Errorf("frames of %d bytes are longer than the %d that %s takes: ip link set %s mtu N makes it take more", size, most, base.Interface, base.Interface)
		}
	}
	base.Public = true
	var all []Contestant
	for _, m := range method.All() {
		if names != nil && !contains(names, m.Name) {
			continue
		}
		for _, q := range queues {
			c := base
			c.Method, c.Queues = m.Name, q
			switch {
			case m.Name == "mmsg":
				plain := c
				plain.Plain = true
				all = append(all, ofConfig(m.Name, c, m, nil), ofConfig(PlainMmsg, plain, m, nil))
			case m.Name != "tap":
				all = append(all, ofConfig(m.Name, c, m, nil))
			case q == 1:
				all = append(all, tap(c, m))
			}
		}
	}
	for _, n := range names {
		if _, err := method.ByName(n); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// PlainMmsg is the name of the method mmsg with one datagram per message.
const PlainMmsg = "mmsg, plain"

func contains(list []string, s string) bool {
	for _, one := range list {
		if one == s {
			return true
		}
	}
	return false
}

// ofConfig returns a contestant that runs the packet engine with a configuration.
func ofConfig(name string, c gen.Config, m method.Method, counter func() (Count, error)) Contestant {
	start := func(ctx context.Context) (*Running, error) {
		ctx, cancel := context.WithCancel(ctx)
		type outcome struct {
			report gen.Report
			err    error
		}
		// done has a capacity of one: the goroutine sends the result of the run, and stop receives it. ready is closed
		// when everything is open and the run begins to send.
		done, ready := make(chan outcome, 1), make(chan struct{})
		c := c
		c.Ready = func() error { close(ready); return nil }
		go func() {
			r, err := gen.Run(ctx, c)
			done <- outcome{r, err}
		}()
		select {
		case <-ready:
		case o := <-done: // the run failed before it was ready
			cancel()
			return nil, o.err
		}
		return &Running{Stop: func() (Sent, error) {
			cancel()
			o := <-done
			return Sent{Frames: o.report.Counters.Left, Train: m.Name == "udpgso" || m.Name == "mmsg" && !c.Plain}, o.err
		}}, nil
	}
	return Contestant{Name: name, Queues: c.Queues, Start: start, Counter: counter}
}

// tapName is the name of the interface that the method tap creates. This host's kernel receives the frames that are
// sent to it, on the same interface.
const tapName = "loamgen0"

// tap returns the contestant for the method tap. In place of a peer's counter, it uses the interface's own counter of
// received frames.
func tap(c gen.Config, m method.Method) Contestant {
	c.Interface = tapName
	s := c.Streams[0]
	s.Template = s.Template.Clone()
	// The destination is not the interface's address, so the kernel drops the frame after counting it.
	s.Template.Set("eth.dst", "02:00:00:00:00:99")
	s.Template.Set("eth.src", "02:00:00:00:00:98")
	c.Streams = []gen.Stream{s}
	c.NextHop = wire.MAC{}
	return ofConfig(m.Name, c, m, func() (Count, error) {
		link, err := netlink.LinkByName(tapName)
		if err != nil {
			return Count{}, fmt.Errorf("%s: %w", tapName, err)
		}
		return received(link), nil
	})
}

// Stream returns the stream that all contestants send: UDP datagrams of one size between fixed ports. The frames have
// no measurement tag, because other programs, such as a bare loop of system calls, do not write one either.
func Stream(destination string, size int, v6 bool) (gen.Stream, error) {
	t := frame.UDP(v6)
	ip := "ip"
	if v6 {
		ip = "ip6"
	}
	if err := t.Set(ip+".dst", destination); err != nil {
		return gen.Stream{}, err
	}
	return gen.Stream{Template: t, Sizes: frame.FixedSize(size), Bare: true}, nil
}
