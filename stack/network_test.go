package stack_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loam/link"
	"loam/link/fault"
	"loam/link/pipe"
	"loam/stack"
	"loam/stack/ring"
	"loam/wire"
)

// The tests of this file have several stacks on one network, or a network that loses, reorders and damages frames.

// hub joins devices like an Ethernet hub: every device receives what the others send.
type hub struct {
	ports []link.Device
	done  sync.WaitGroup
	mu    sync.Mutex // serializes senders
}

// newHub returns a hub and the far ends of its n ports.
func newHub(n int) (h *hub, ends []link.Device) {
	h = &hub{}
	for i := range n {
		mac := wire.MAC{2, 0, 0, 0, 1, byte(i)}
		near, far := pipe.New(pipe.Config{Name: fmt.Sprint("port", i), MACs: [2]wire.MAC{mac, {2, 0, 0, 0, 2, byte(i)}}})
		ends = append(ends, near)
		h.ports = append(h.ports, far)
	}
	for i := range n {
		h.done.Go(func() { h.repeat(i) })
	}
	return h, ends
}

// repeat forwards frames from a port to all others until the port is closed.
func (h *hub) repeat(from int) {
	var fs [link.BatchSize]*link.Frame
	for {
		n, err := h.ports[from].Queues()[0].Recv(fs[:])
		for _, f := range fs[:n] {
			for to, port := range h.ports {
				if to == from {
					continue
				}
				g := link.NewFrame(f.Len())
				copy(g.Bytes(), f.Bytes())
				h.send(port, g)
			}
			f.Free()
		}
		if err != nil {
			return
		}
	}
}

// send sends a frame to a port, or drops it if the port has no room.
func (h *hub) send(port link.Device, f *link.Frame) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n, _ := port.Queues()[0].Send([]*link.Frame{f}); n == 0 {
		f.Free()
	}
}

func (h *hub) close() {
	for _, p := range h.ports {
		p.Close()
	}
	h.done.Wait()
}

func TestThreeHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link.Track(true)
		ring.Track(true)
		h, ends := newHub(3)
		var hosts []*stack.Stack
		for i, end := range ends {
			hosts = append(hosts, newHost(t, stack.Config{Shards: 2}, end, netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})))
		}
		t.Cleanup(func() {
			for _, s := range hosts {
				s.Close()
			}
			h.close()
			checkLeaks(t)
		})
		ctx := context.Background()
		for i, from := range hosts {
			for j := range hosts {
				to := netip.AddrFrom4([4]byte{10, 0, 0, byte(j + 1)})
				if r, err := from.Ping(ctx, to, 100); err != nil || r.From != to {
					t.Errorf("host %d pings host %d: %+v, %v", i, j, r, err)
				}
			}
			if n := len(from.Interfaces()[1].Neighbours()); n != 2 {
				t.Errorf("host %d knows %d neighbours, want 2", i, n)
			}
		}
		if err := exchange(hosts[0], hosts[2], "10.0.0.3:80", 200_000); err != nil {
			t.Errorf("TCP beside a host that listens to all: %v", err)
		}
		c := hosts[1].Counters()
		if c.Get(stack.EthNotForUs) == 0 {
			t.Error("the third host did not see the others' frames")
		}
		all := mustListenUDP(t, hosts[1], "0.0.0.0:9", stack.UDPOptions{})
		sender := mustListenUDP(t, hosts[0], "0.0.0.0:9", stack.UDPOptions{Broadcast: true})
		synctest.Wait() // waits until all hosts are idle: the hub drops frames to a host that has no room
		mustWriteTo(t, sender, "to all", "10.0.0.255:9")
		wantDatagram(t, all, "a broadcast", "to all")
	})
}

// If two hosts use one address, the second one is notified.
func TestAddressConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link.Track(true)
		ring.Track(true)
		h, ends := newHub(2)
		a := newHost(t, stack.Config{Shards: 1}, ends[0], addrA)
		b := newHost(t, stack.Config{Shards: 1}, ends[1], addrA)
		t.Cleanup(func() {
			a.Close()
			b.Close()
			h.close()
			checkLeaks(t)
		})
		time.Sleep(time.Minute)
		ca, cb := a.Counters(), b.Counters()
		if ca.Get(stack.ARPConflict)+cb.Get(stack.ARPConflict) == 0 {
			t.Error("nobody noticed")
		}
		if n := ca.Get(stack.ARPSent) + cb.Get(stack.ARPSent); n > 20 {
			t.Errorf("%d ARP packets in a minute: they quarrel (RFC 5227 section 2.4 (c))", n)
		}
	})
}

// exchange sends size bytes from a to b and back over one connection.
func exchange(a, b *stack.Stack, address string, size int) error {
	l, err := b.Listen("tcp", address)
	if err != nil {
		return err
	}
	defer l.Close()
	echoed := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, err = io.Copy(c, c)
			c.Close()
		}
		echoed <- err
	}()
	c, err := a.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	sent := randomBytes(size)
	wrote := make(chan error, 1)
	go func() {
		_, err := c.Write(sent)
		c.(*stack.TCPConn).CloseWrite()
		wrote <- err
	}()
	got, err := io.ReadAll(c)
	switch {
	case err != nil:
		return fmt.Errorf("reading: %w", err)
	case !bytes.Equal(got, sent):
		return fmt.Errorf("%d of %d bytes came back, or others", len(got), size)
	}
	if err := <-wrote; err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	if err := <-echoed; err != nil {
		return fmt.Errorf("echoing: %w", err)
	}
	return nil
}

// The bytes arrive unchanged in spite of loss, reordering and duplication.
func TestBadNetworks(t *testing.T) {
	for name, d := range map[string]fault.Direction{
		"loss 1%":           {Loss: 0.01},
		"loss 10%":          {Loss: 0.1},
		"loss 30%":          {Loss: 0.3},
		"reordering":        {Reorder: 0.2, ReorderDistance: 10},
		"duplicates":        {Duplicate: 0.2},
		"damage":            {Corrupt: 0.05},
		"delay":             {Delay: 50 * time.Millisecond},
		"jitter":            {Delay: 10 * time.Millisecond, Jitter: 20 * time.Millisecond},
		"all at once":       {Loss: 0.05, Reorder: 0.1, Duplicate: 0.05, Corrupt: 0.02, Delay: 20 * time.Millisecond, Jitter: 10 * time.Millisecond},
		"far and forgetful": {Loss: 0.02, Delay: 200 * time.Millisecond},
	} {
		for _, depth := range []int{4, 256} {
			t.Run(fmt.Sprintf("%s,depth=%d", name, depth), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					link.Track(true)
					ring.Track(true)
					near, far := pipe.New(pipe.Config{Depth: depth})
					bad := fault.New(near, fault.Config{Seed: 1, Send: d, Recv: d})
					a := newHost(t, stack.Config{Shards: 2}, bad, addrA)
					b := newHost(t, stack.Config{Shards: 2}, far, addrB)
					t.Cleanup(func() {
						a.Close()
						b.Close()
						checkLeaks(t)
					})
					began := time.Now()
					if err := exchange(a, b, "10.0.0.2:80", 300_000); err != nil {
						t.Error(err)
					}
					t.Logf("300 kB there and back took %v", time.Since(began))
				})
			})
		}
	}
}
