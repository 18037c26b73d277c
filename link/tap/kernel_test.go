//go:build linux

package tap_test

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"loam/internal/netns"
	"loam/link"
	"loam/link/linktest"
	"loam/link/tap"
	"loam/wire"
)

// openTap opens an interface, sets it up and assigns an address.
func openTap(t testing.TB, c tap.Config, address string) *tap.Device {
	t.Helper()
	d, err := tap.Open(c)
	must(t, err)
	t.Cleanup(func() { must(t, d.Close()) })
	if address != "" {
		netns.Address(t, d.Info().Name, netip.MustParsePrefix(address))
	}
	netns.Up(t, d.Info().Name, 0)
	return d
}

// recv waits for count frames for which the function want returns true, and frees all
// others.
func recv(t testing.TB, d link.Device, count int, want func(f *link.Frame) bool) (got []*link.Frame) {
	t.Helper()
	fs := make([]*link.Frame, link.BatchSize)
	for len(got) < count {
		n, err := d.Queues()[0].Recv(fs)
		must(t, err)
		for _, f := range fs[:n] {
			if want(f) {
				got = append(got, f)
			} else {
				f.Free()
			}
		}
	}
	return got
}

// isProtocol accepts IPv4 packets of a protocol.
func isProtocol(p wire.Protocol) func(f *link.Frame) bool {
	return func(f *link.Frame) bool {
		h, _, err := wire.ParseIPv4(f.Bytes())
		return err == nil && h.Protocol == p
	}
}

// The kernel as oracle: when the kernel forwards a GSO frame to an interface without offloads, it
// produces the same segments as link.Segment, except for the TTL.
func TestKernelSegmentsAlike(t *testing.T) {
	needTun(t)
	must(t, os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0))
	in := openTap(t, tap.Config{Medium: link.IP}, "198.51.100.1/24")
	out := openTap(t, tap.Config{Medium: link.IP, NoOffloads: true}, "192.0.2.100/24")
	for name, c := range map[string]linktest.Transport{
		"TCP":     {Protocol: wire.ProtoTCP, Payload: 20_000, GSOSize: 1448},
		"TCP ECN": {Protocol: wire.ProtoTCP, Payload: 5000, GSOSize: 1000, ECN: true},
		"UDP":     {Protocol: wire.ProtoUDP, Payload: 5000, GSOSize: 1200},
	} {
		ours := linktest.Unfinished(link.IP, c)
		sent := linktest.Unfinished(link.IP, c)
		if n, err := in.Queues()[0].Send([]*link.Frame{sent}); n != 1 || err != nil {
			t.Fatalf("%s: Send = %d, %v", name, n, err)
		}
		want := make([]*link.Frame, link.BatchSize)
		n, ok := link.Segment(link.IP, ours, want)
		if !ok {
			t.Fatalf("%s: refused", name)
		}
		want = append(want[:n], ours)
		for i, f := range recv(t, out, len(want), isProtocol(c.Protocol)) {
			forward(want[i].Bytes())
			if !bytes.Equal(f.Bytes(), want[i].Bytes()) {
				t.Errorf("%s: segment %d: the kernel has\n% x\nlink.Segment\n% x", name, i, f.Bytes()[:60], want[i].Bytes()[:60])
			}
			f.Free()
			want[i].Free()
		}
	}
}

// forward modifies an IPv4 header as a router does.
func forward(b []byte) {
	h, _, _ := wire.ParseIPv4(b)
	h.TTL--
	h.Put(b)
}

// A large datagram that the kernel sends as a whole arrives as one GSO frame.
func TestKernelSendsGSO(t *testing.T) {
	needTun(t)
	d := openTap(t, tap.Config{Medium: link.IP}, "192.0.2.1/24")
	if !d.Info().Offloads.Has(link.OffloadUSO) {
		t.Skip("the kernel is older than 6.2")
	}
	c, err := net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.IPv4(192, 0, 2, 2), Port: 9})
	must(t, err)
	defer c.Close()
	raw, err := c.SyscallConn()
	must(t, err)
	const udpSegment = 103 // UDP_SEGMENT
	must(t, raw.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_UDP, udpSegment, 1000) }))
	must(t, err)
	payload := bytes.Repeat([]byte("0123456789"), 1250)
	_, err = c.Write(payload)
	must(t, err)

	f := recv(t, d, 1, isProtocol(wire.ProtoUDP))[0]
	want := link.Offload{NeedsChecksum: true, ChecksumValid: true, GSO: link.GSOUDP, GSOSize: 1000, HeaderLen: 28, CsumStart: 20, CsumOffset: 6}
	if f.Offload != want || !bytes.Equal(f.Bytes()[28:], payload) {
		t.Errorf("arrived with %d bytes and %+v, want %+v", f.Len(), f.Offload, want)
	}
	f.Free()
}

// Without offloads, the kernel delivers only finished frames.
func TestKernelFinishesChecksums(t *testing.T) {
	needTun(t)
	d := openTap(t, tap.Config{Medium: link.IP, NoOffloads: true}, "192.0.2.1/24")
	c, err := net.Dial("udp4", "192.0.2.2:9")
	must(t, err)
	defer c.Close()
	_, err = c.Write([]byte("hello"))
	must(t, err)
	f := recv(t, d, 1, isProtocol(wire.ProtoUDP))[0]
	h, segment, err := wire.ParseIPv4(f.Bytes())
	must(t, err)
	if f.NeedsChecksum || !wire.UDPChecksumOK(segment, h.Src, h.Dst) {
		t.Errorf("arrived unfinished: %+v", f.Offload)
	}
	f.Free()
}

// While the interface is down, frames are dropped and counted. When the interface is removed, the
// device is closed.
func TestInterfaceDownAndRemoved(t *testing.T) {
	needTun(t)
	link.Track(true)
	defer link.Track(false)
	d := openTap(t, tap.Config{Name: "loam0"}, "")
	q := d.Queues()[0]
	netns.Down(t, "loam0")
	if n, err := q.Send([]*link.Frame{linktest.Plain(link.Ethernet, 60, 1)}); n != 1 || err != nil {
		t.Errorf("Send while the interface is down = %d, %v", n, err)
	}
	if s := d.Stats(); s.TxDropped != 1 || s.TxFrames != 0 {
		t.Errorf("Stats = %+v, want one frame dropped", s)
	}
	removed := make(chan error)
	go func() {
		_, err := q.Recv(make([]*link.Frame, 1))
		removed <- err
	}()
	netns.Remove(t, "loam0")
	if err := <-removed; !errors.Is(err, link.ErrClosed) {
		t.Errorf("Recv on a removed interface: %v, want ErrClosed", err)
	}
	f := linktest.Plain(link.Ethernet, 60, 1)
	if _, err := q.Send([]*link.Frame{f}); !errors.Is(err, link.ErrClosed) {
		t.Errorf("Send on a removed interface: %v, want ErrClosed", err)
	}
	f.Free()
	must(t, d.Close())
	if n := link.Outstanding(); n != 0 {
		t.Errorf("%d frames are leaked", n)
	}
}

// A persistent interface outlives its device and keeps its addresses.
func TestPersist(t *testing.T) {
	needTun(t)
	d, err := tap.Open(tap.Config{Name: "loam1", Persist: true})
	must(t, err)
	mac := d.Info().MAC
	must(t, d.Close())
	netns.Index(t, "loam1") // fails if the interface no longer exists
	again, err := tap.Open(tap.Config{Name: "loam1"})
	must(t, err)
	if again.Info().MAC != mac {
		t.Errorf("address %v, was %v", again.Info().MAC, mac)
	}
	must(t, again.Close())
	netns.Remove(t, "loam1")
}

// Every queue can send to the kernel, and every frame from the kernel arrives at one of the queues.
func TestQueues(t *testing.T) {
	needTun(t)
	d := openTap(t, tap.Config{Queues: 3}, "")
	kernel := packetSocket(t, d.Info())
	defer kernel.Close()
	for i, q := range d.Queues() {
		if n, err := q.Send([]*link.Frame{linktest.Plain(link.Ethernet, 60, uint32(i))}); n != 1 || err != nil {
			t.Fatalf("queue %d: Send = %d, %v", i, n, err)
		}
	}
	link.FreeAll(recv(t, kernel, 3, func(*link.Frame) bool { return true }))

	got := make(chan int)
	for _, q := range d.Queues() {
		go func() {
			fs := make([]*link.Frame, 1)
			for {
				n, err := q.Recv(fs)
				if err != nil {
					return
				}
				link.FreeAll(fs[:n])
				got <- n
			}
		}()
	}
	for i := range 20 {
		if n, err := kernel.Queues()[0].Send([]*link.Frame{linktest.Plain(link.Ethernet, 60, uint32(i))}); n != 1 || err != nil {
			t.Fatalf("Send = %d, %v", n, err)
		}
		<-got
	}
}

// An interface created for several queues can be opened with one.
func TestOneOfSeveralQueues(t *testing.T) {
	needTun(t)
	d, err := tap.Open(tap.Config{Persist: true, Queues: 2})
	must(t, err)
	name := d.Info().Name
	defer netns.Remove(t, name)
	must(t, d.Close())
	d, err = tap.Open(tap.Config{Name: name})
	must(t, err)
	if n := len(d.Queues()); n != 1 {
		t.Errorf("%d queues", n)
	}
	must(t, d.Close())
}

// If opening fails, no files are left. Their descriptors are already closed; the garbage collector
// would close the same numbers again when other files use them.
func TestOpenFilesRefuses(t *testing.T) {
	needTun(t)
	d, err := tap.Open(tap.Config{Persist: true}) // creates the interface for one queue only
	must(t, err)
	defer netns.IP(t, "link", "delete", d.Info().Name)
	name := d.Info().Name
	must(t, d.Close())
	files, _, err := tap.OpenFiles(tap.Config{Name: name, Queues: 2})
	if err == nil || len(files) != 0 {
		t.Errorf("two queues of an interface that has one: %d files, %v", len(files), err)
	}
}

// A file that is not a descriptor of an interface is rejected, and no file stays open.
func TestFromFilesRefuses(t *testing.T) {
	if _, err := tap.FromFiles(nil, link.Info{Name: "none"}); err == nil {
		t.Error("no file at all was accepted")
	}
	f, err := os.CreateTemp(t.TempDir(), "")
	must(t, err)
	if _, err := tap.FromFiles([]*os.File{f}, link.Info{Name: "disk"}); err == nil {
		t.Error("a disk file was accepted")
	}
	if err := f.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the file was left open: %v", err)
	}
}

func Benchmark(b *testing.B) {
	needTun(b)
	linktest.Bench(b, maker(tap.Config{}, 0), linktest.NeverShort)
}
