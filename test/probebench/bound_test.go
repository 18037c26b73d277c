//go:build linux

package probebench

import (
	"encoding/binary"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"loam/gen/bench"
	"loam/gen/method"
	"loam/wire"
)

// The bound is the rate at which the far kernel can answer on this machine if probing costs almost nothing and
// receiving costs nothing. Each target is sent the same echo request, in a simple order, in the
// cheapest way that we know, on all processors. Replies are dropped as early as possible (tcx) and
// counted by the interface. A prober does all of this, and also has to select, check and record.

// bound measures the rate at which the far kernel can answer.
func (l *lab) bound(t testing.TB, read func() uint64) run {
	t.Helper()
	defer l.dropAnswers(t).Close()
	file, err := os.Open("/proc/thread-self/net/dev")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	answers, before, w := received(file, l.near), processorTime(t), startWatch(read)
	var lanes sync.WaitGroup
	processors := runtime.NumCPU()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors + 2)) // the senders leave no processor to the watcher
	for i := range processors {
		lanes.Go(func() { l.ask(t, uint32(i), uint32(processors)) })
	}
	lanes.Wait()
	time.Sleep(100 * time.Millisecond) // waits for the last replies to arrive
	var r run
	var span time.Duration
	r.CPU = (processorTime(t) - before).Seconds()
	r.Sent, span = w.done()
	r.Sending = span.Seconds()
	r.Found = received(file, l.near) - answers
	return r
}

// ask probes every step-th target, starting at first.
func (l *lab) ask(t testing.TB, first, step uint32) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m, err := method.ByName("tc")
	if err != nil {
		t.Error(err)
		return
	}
	s, err := m.Open(method.Config{Interface: l.near, Size: 64, Batch: m.Batch})
	if err != nil {
		t.Error(err)
		return
	}
	defer s.Close()
	request := l.echoRequest(t)
	a := l.targets.Addr().As4()
	base, size := binary.BigEndian.Uint32(a[:]), uint32(1)<<(32-l.targets.Bits())
	const stride = 0x9e3779b1 // odd, so it reaches all targets; the golden ratio, so neighbours are far apart
	const dst, sum = wire.EthernetLen + 16, wire.EthernetLen + 10
	next := first
	fill := func(slot []byte) int {
		if next >= size {
			return 0
		}
		n := copy(slot, request)
		binary.BigEndian.PutUint32(slot[dst:], base+next*stride%size)
		binary.BigEndian.PutUint16(slot[sum:], ^wire.Sum(slot[wire.EthernetLen:][:wire.IPv4MinLen], 0))
		next += step
		return n
	}
	for next < size {
		if _, err := s.Send(m.Batch, fill); err != nil {
			t.Error(err)
			return
		}
	}
}

// echoRequest returns an echo request as long as loam's, without a destination.
func (l *lab) echoRequest(t testing.TB) []byte {
	t.Helper()
	i, err := net.InterfaceByName(l.near)
	if err != nil {
		t.Fatal(err)
	}
	router, err := net.ParseMAC(l.router)
	if err != nil {
		t.Fatal(err)
	}
	const data = 16
	b := make([]byte, wire.EthernetLen+wire.IPv4MinLen+wire.ICMPv4Len+data)
	eth := wire.Ethernet{Dst: wire.MAC(router), Src: wire.MAC(i.HardwareAddr), Type: wire.TypeIPv4}
	eth.Put(b)
	ip := wire.IPv4{DontFragment: true, TTL: 64, Protocol: wire.ProtoICMP, Src: l.sourceAddr(), Dst: l.targets.Addr(), PayloadLen: wire.ICMPv4Len + data}
	ip.Put(b[wire.EthernetLen:])
	binary.BigEndian.PutUint16(b[wire.EthernetLen+10:], 0)
	wire.ICMPv4{Type: wire.ICMPv4Echo}.Put(b[wire.EthernetLen+wire.IPv4MinLen:])
	wire.PutICMPv4Checksum(b[wire.EthernetLen+wire.IPv4MinLen:])
	return b
}

// dropAnswers makes the near end drop all IPv4 packets that it receives.
func (l *lab) dropAnswers(t testing.TB) link.Link {
	t.Helper()
	const protocol, drop, next = 16, 2, -1
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{
		asm.LoadMem(asm.R1, asm.R1, protocol, asm.Word),
		asm.HostTo(asm.BE, asm.R1, asm.Half),
		asm.Mov.Imm(asm.R0, next),
		asm.JNE.Imm(asm.R1, int32(wire.TypeIPv4), "end"),
		asm.Mov.Imm(asm.R0, drop),
		asm.Return().WithSymbol("end"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	i, err := net.InterfaceByName(l.near)
	if err != nil {
		t.Fatal(err)
	}
	at, err := link.AttachTCX(link.TCXOptions{Interface: i.Index, Program: p, Attach: ebpf.AttachTCXIngress})
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// processorTime returns the CPU time of this process and of the kernel's softirq threads.
func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano()+u.Stime.Nano()) + bench.SoftirqTime()
}
