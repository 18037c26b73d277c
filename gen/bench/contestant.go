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

// Methods makes a contestant of each method that can send what s says by the
// interface, for each number of queues: names says which, nil is all. Frames that the
// interface does not take as they are would be counted in pieces, and are an error.
func Methods(name string, s gen.Stream, nextHop wire.MAC, names []string, queues []int) ([]Contestant, error) {
	if link, err := netlink.LinkByName(name); err == nil {
		if most := link.Attrs().MTU + wire.EthernetLen + frame.FCSLen; s.Sizes.Max() > most {
			return nil, fmt.Errorf("frames of %d bytes are longer than the %d that %s takes: ip link set %s mtu N makes it take more", s.Sizes.Max(), most, name, name)
		}
	}
	var all []Contestant
	for _, m := range method.All() {
		if names != nil && !contains(names, m.Name) {
			continue
		}
		for _, q := range queues {
			c := gen.Config{Method: m.Name, Interface: name, Queues: q, Streams: []gen.Stream{s}, NextHop: nextHop, Public: true}
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

// PlainMmsg is what the method mmsg is called that sends one datagram a message.
const PlainMmsg = "mmsg, plain"

func contains(list []string, s string) bool {
	for _, one := range list {
		if one == s {
			return true
		}
	}
	return false
}

// ofConfig is a run of the engine as a contestant.
func ofConfig(name string, c gen.Config, m method.Method, counter func() (Count, error)) Contestant {
	start := func(ctx context.Context) (*Running, error) {
		ctx, cancel := context.WithCancel(ctx)
		type outcome struct {
			report gen.Report
			err    error
		}
		// done has one place: the goroutine sends the outcome, stop receives. ready is
		// closed when everything is open.
		done, ready := make(chan outcome, 1), make(chan struct{})
		c := c
		c.Ready = func() error { close(ready); return nil }
		go func() {
			r, err := gen.Run(ctx, c)
			done <- outcome{r, err}
		}()
		select {
		case <-ready:
		case o := <-done: // it did not come so far
			cancel()
			return nil, o.err
		}
		threads := gen.ThreadName
		if m.Name == "loam" {
			threads = "" // those of the stack send
		}
		return &Running{Threads: threads, Stop: func() (Sent, error) {
			cancel()
			o := <-done
			return Sent{Frames: o.report.Counters.Left, Train: m.Name == "udpgso" || m.Name == "mmsg" && !c.Plain}, o.err
		}}, nil
	}
	return Contestant{Name: name, Queues: c.Queues, Start: start, Counter: counter}
}

// tapName is the interface that the method tap makes for itself: what is sent
// there arrives in the kernel of this host, at the same interface.
const tapName = "loamgen0"

func tap(c gen.Config, m method.Method) Contestant {
	c.Interface = tapName
	s := c.Streams[0]
	s.Template = s.Template.Clone()
	// An address that is not the interface's: the kernel drops the frame.
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

// Stream is what all contestants send: UDP of one size from one port to another,
// without a tag, which a bare loop of system calls does not write either.
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
