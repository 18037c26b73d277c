package posix

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/packet"
	"loam/posix/socket"
	"loam/stack"
)

// Receive rings of packet sockets, as in Linux's Documentation/networking/packet_mmap.rst.

// plainMemory is an fs.Memory backed by a slice.
type plainMemory struct {
	bytes []byte
	freed bool
}

func (m *plainMemory) Address() uint64                  { return 1 << 30 }
func (m *plainMemory) Size() int64                      { return int64(len(m.bytes)) }
func (m *plainMemory) Bytes(n int64) ([]byte, error)    { return m.bytes[:n], nil }
func (m *plainMemory) Clear(from, to int64)             { clear(m.bytes[from:to]) }
func (m *plainMemory) Free()                            { m.freed = true }
func (m *plainMemory) reserve(int64) (fs.Memory, error) { return m, nil }

// ringOf encodes the fields of struct tpacket_req or tpacket_req3.
func ringOf(words ...uint32) (b []byte) {
	for _, w := range words {
		b = binary.NativeEndian.AppendUint32(b, w)
	}
	return b
}

// mappedRing returns a socket with a mapped ring, and a function that sends a datagram on its
// interface.
func mappedRing(t *testing.T, version int, request []byte, size int) (p *Process, s int, memory *plainMemory, send func(string)) {
	t.Helper()
	p = process(t)
	s = fd(t)(p.Socket(linux.AF_PACKET, linux.SOCK_RAW, htons(stack.LinkAll)))
	ok(t, p.Bind(s, onLoopback(0)))
	ok(t, p.SetSockOpt(s, linux.SOL_PACKET, linux.PACKET_IGNORE_OUTGOING, socket.IntValue(1)))
	ok(t, p.SetSockOpt(s, linux.SOL_PACKET, linux.PACKET_VERSION, socket.IntValue(version)))
	ok(t, p.SetSockOpt(s, linux.SOL_PACKET, linux.PACKET_RX_RING, request))
	ok(t, p.MayMap(s, linux.PROT_READ|linux.PROT_WRITE, linux.MAP_SHARED, 0))
	memory = &plainMemory{bytes: make([]byte, size)}
	at, errno := p.MapShared(s, uint64(size), 0, memory.reserve)
	if ok(t, errno); at != memory.Address() {
		t.Errorf("it is at %#x", at)
	}
	udp := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0))
	receiver := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0))
	ok(t, p.Bind(receiver, localhost(9)))
	return p, s, memory, func(text string) {
		t.Helper()
		_, errno := p.Send(udp, []byte(text), Outgoing{To: localhost(9)})
		ok(t, errno)
		b := make([]byte, 100)
		if r, errno := p.Recv(receiver, b, 0); errno != 0 || string(b[:r.N]) != text { // after the datagram has arrived at receiver, its frame is in the ring
			t.Fatalf("%q, %v", b[:r.N], errno)
		}
	}
}

// ringReadable reports whether the socket is readable for poll(2).
func ringReadable(t *testing.T, p *Process, s int) bool {
	t.Helper()
	_, file, errno := p.socket(s)
	ok(t, errno)
	return file.Events()&PollIn != 0
}

func u16(b []byte, at int) int { return int(binary.NativeEndian.Uint16(b[at:])) }
func u32(b []byte, at int) int { return int(binary.NativeEndian.Uint32(b[at:])) }

const udpHeaders = 14 + 20 + 8

// fresh is the status in the ring of a new frame of the loopback interface, whose checksum is not computed.
const fresh = linux.TP_STATUS_USER | linux.TP_STATUS_CSUMNOTREADY

func TestRingOfSlots(t *testing.T) {
	p, s, memory, send := mappedRing(t, linux.TPACKET_V2, ringOf(4096, 2, 2048, 4), 2*4096)
	if ringReadable(t, p, s) {
		t.Error("an empty ring is readable")
	}
	for i, text := range []string{"zero", "one", "two", "three", "four"} {
		send(text)
		if i == 4 {
			break // the ring has no room for this frame
		}
		b := memory.bytes[i*2048 : (i+1)*2048]
		if u32(b, 0) != fresh || u32(b, 4) != udpHeaders+len(text) || u32(b, 8) != u32(b, 4) || u16(b, 12) != 66 || u16(b, 14) != 80 {
			t.Fatalf("slot %d: %x", i, b[:32])
		}
		if age := time.Since(time.Unix(int64(u32(b, 16)), int64(u32(b, 20)))); age < 0 || age > time.Minute {
			t.Errorf("it is of %v ago", age)
		}
		if u16(b, 32) != linux.AF_PACKET || u32(b, 36) != 1 || u16(b, 40) != linux.ARPHRD_LOOPBACK {
			t.Errorf("from %x", b[32:52])
		}
		if !bytes.HasSuffix(b[66:66+u32(b, 8)], []byte(text)) {
			t.Errorf("%x", b[66:66+u32(b, 8)])
		}
	}
	if !ringReadable(t, p, s) {
		t.Error("a full ring is not readable")
	}
	stats, errno := p.GetSockOpt(s, linux.SOL_PACKET, linux.PACKET_STATISTICS)
	if ok(t, errno); u32(stats, 0) != 5 || u32(stats, 4) != 1 {
		t.Errorf("%d frames, %d dropped", u32(stats, 0), u32(stats, 4))
	}
	clear(memory.bytes[:4]) // gives the first slot back to the kernel, as a program does
	send("five")
	if got := u32(memory.bytes, 0); got != fresh|linux.TP_STATUS_LOSING {
		t.Errorf("behind one that was dropped: %#x", got)
	}
	if _, errno := p.Recv(s, make([]byte, 100), linux.MSG_DONTWAIT); errno != linux.EAGAIN {
		t.Errorf("read beside the ring: %v", errno)
	}
}

func TestRingOfBlocks(t *testing.T) {
	const retire = 50
	p, s, memory, send := mappedRing(t, linux.TPACKET_V3, ringOf(4096, 2, 2048, 4, retire, 0, 0), 2*4096)
	block := func(i int) []byte { return memory.bytes[i*4096 : (i+1)*4096] }
	handed := func(i int) bool { return packet.Status(block(i)[8:]).Load()&linux.TP_STATUS_USER != 0 }
	if u32(block(1), 16) != 48 {
		t.Errorf("the first frame of an empty block is at %d", u32(block(1), 16))
	}
	send("first")
	send("second, and longer")
	for end := time.Now().Add(10 * time.Second); !handed(0); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the block is never handed over")
		}
	}
	b := block(0)
	if u32(b, 8) != linux.TP_STATUS_USER|linux.TP_STATUS_BLK_TMO || !ringReadable(t, p, s) {
		t.Errorf("status %#x", u32(b, 8))
	}
	at := u32(b, 16)
	for i, text := range []string{"first", "second, and longer"} {
		h := b[at:]
		if u32(h, 12) != udpHeaders+len(text) || u32(h, 16) != u32(h, 12) || u32(h, 20) != fresh || u16(h, 24) != 82 || u16(h, 26) != 96 {
			t.Errorf("frame %d: %x", i, h[:48])
		}
		if !bytes.HasSuffix(h[82:82+u32(h, 12)], []byte(text)) {
			t.Errorf("%x", h[82:82+u32(h, 12)])
		}
		if last := u32(h, 0) == 0; last != (i == 1) {
			t.Errorf("frame %d goes on after %d", i, u32(h, 0))
		}
		at += u32(h, 0)
	}
	if n := u32(b, 12); n != 2 {
		t.Errorf("%d frames", n)
	}
	for range 100 { // fill the second block and overflow it
		send("and more")
	}
	if !handed(1) {
		t.Error("a full block is not handed over")
	}
	stats, errno := p.GetSockOpt(s, linux.SOL_PACKET, linux.PACKET_STATISTICS)
	if ok(t, errno); len(stats) != 12 || u32(stats, 0) != 102 || u32(stats, 4) != 102-2-u32(block(1), 12) {
		t.Errorf("%x, %d frames in the second block", stats, u32(block(1), 12))
	}
	packet.Status(b[8:]).Store(linux.TP_STATUS_KERNEL)
	send("in front again")
	for end := time.Now().Add(10 * time.Second); !handed(0); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the block is never handed over again")
		}
	}
	if n := u32(b, 12); n != 1 || binary.NativeEndian.Uint64(b[24:]) != 3 {
		t.Errorf("%d frames in block %d", n, binary.NativeEndian.Uint64(b[24:]))
	}
}

func TestRingEnds(t *testing.T) {
	p, s, memory, send := mappedRing(t, linux.TPACKET_V3, ringOf(4096, 1, 2048, 2, 10000, 0, 0), 4096)
	send("before")
	none := ringOf(0, 0, 0, 0, 0, 0, 0)
	wantErrno(t, p.SetSockOpt(s, linux.SOL_PACKET, linux.PACKET_RX_RING, none), linux.EBUSY, "it is mapped")
	wantErrno(t, p.SetSockOpt(s, linux.SOL_PACKET, linux.PACKET_VERSION, socket.IntValue(linux.TPACKET_V2)), linux.EBUSY, "there is a ring")
	p.UnmapShared(memory.Address(), 4096)
	if !memory.freed {
		t.Error("the memory is kept")
	}
	send("nobody looks")
	ok(t, p.SetSockOpt(s, linux.SOL_PACKET, linux.PACKET_RX_RING, none))
	wantErrno(t, p.MayMap(s, linux.PROT_READ, linux.MAP_SHARED, 0), linux.EINVAL, "no ring")
	send("read")
	b := make([]byte, 100)
	if r, errno := p.Recv(s, b, 0); errno != 0 || !bytes.HasSuffix(b[:r.N], []byte("read")) {
		t.Errorf("%x, %v", b[:r.N], errno)
	}
	q, other, kept, send := mappedRing(t, linux.TPACKET_V2, ringOf(4096, 1, 2048, 2), 4096)
	ok(t, q.Close(other))
	send("closed")
	if kept.freed || kept.bytes[0] != 0 {
		t.Error("memory that is mapped outlives the socket, and nothing is written to it")
	}
}

// scattered is the memory of a ring that Linux processes map: pages that are not contiguous.
type scattered struct {
	pages   [][]byte
	dropped bool
}

func (m *scattered) Content(page int) []byte { return m.pages[page] }
func (m *scattered) Drop()                   { m.dropped = true }

func TestRingOfLinuxProcesses(t *testing.T) {
	const size = 4 * 4096
	p := process(t)
	s := fd(t)(p.Socket(linux.AF_PACKET, linux.SOCK_RAW, 0))
	_, _, errno := p.RingAt(s, linux.MAP_SHARED, 0)
	wantErrno(t, errno, linux.EINVAL, "no ring")
	_, _, errno = p.RingAt(fd(t)(p.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0)), linux.MAP_SHARED, 0)
	wantErrno(t, errno, linux.ENODEV, "another socket")
	ok(t, p.SetSockOpt(s, linux.SOL_PACKET, linux.PACKET_VERSION, socket.IntValue(linux.TPACKET_V3)))
	ok(t, p.SetSockOpt(s, linux.SOL_PACKET, linux.PACKET_RX_RING, ringOf(size/2, 2, 2048, 8, 10000, 0, 0)))
	r, _, errno := p.RingAt(s, linux.MAP_SHARED, 0)
	ok(t, errno)
	memory := &scattered{}
	allocate := func(n int64) (packet.Shared, error) {
		for range n / 4096 {
			memory.pages = append(memory.pages, make([]byte, 4096, 5000))
		}
		return memory, nil
	}
	if _, err := r.Share(size/2, allocate); err != linux.EINVAL {
		t.Error("a part of the ring: ", err)
	}
	for range 2 {
		if m, err := r.Share(size, allocate); err != nil || m != memory || len(memory.pages) != 4 {
			t.Fatal(m, err, len(memory.pages))
		}
	}
	if _, err := r.Map(size, (&plainMemory{bytes: make([]byte, size)}).reserve); err != linux.ENODEV {
		t.Error("a Go program and a Linux process: ", err)
	}
	for i := range 2 { // blocks, of two pages each
		if b := memory.pages[2*i]; u32(b, 0) != linux.TPACKET_V3 || u32(b, 4) != 48 || u32(b, 16) != 48 {
			t.Errorf("block %d: %x", i, b[:48])
		}
	}
	r.Count(1)
	r.Count(-1)
	r.Count(-1)
	wantErrno(t, p.SetSockOpt(s, linux.SOL_PACKET, linux.PACKET_RX_RING, ringOf(0, 0, 0, 0, 0, 0, 0)), linux.EBUSY, "it is mapped")
	if r.Count(-1); !memory.dropped {
		t.Error("the memory is kept after the last mapping")
	}
	ok(t, p.SetSockOpt(s, linux.SOL_PACKET, linux.PACKET_RX_RING, ringOf(0, 0, 0, 0, 0, 0, 0)))
}

func TestRingHeaderLength(t *testing.T) {
	p := process(t)
	s := fd(t)(p.Socket(linux.AF_PACKET, linux.SOCK_RAW, 0))
	for version, want := range []int{32, 32, 48} {
		b, errno := p.GetSockOptBy(s, linux.SOL_PACKET, linux.PACKET_HDRLEN, socket.IntValue(version))
		if ok(t, errno); u32(b, 0) != want {
			t.Errorf("version %d: %x", version, b)
		}
	}
	for _, request := range [][]byte{socket.IntValue(3), socket.IntValue(-1), {2, 0, 0}} {
		_, errno := p.GetSockOptBy(s, linux.SOL_PACKET, linux.PACKET_HDRLEN, request)
		wantErrno(t, errno, linux.EINVAL, "a request that is wrong")
	}
}

func TestRingRequests(t *testing.T) {
	p := process(t)
	for _, c := range []struct {
		what    string
		version int
		request []byte
		want    Errno
	}{
		{"of version 1", linux.TPACKET_V1, ringOf(4096, 1, 2048, 2), linux.EINVAL},
		{"too short", linux.TPACKET_V2, ringOf(4096, 1, 2048), linux.EINVAL},
		{"of version 3, and too short", linux.TPACKET_V3, ringOf(4096, 1, 2048, 2), linux.EINVAL},
		{"blocks that are no pages", linux.TPACKET_V2, ringOf(5000, 1, 2048, 2), linux.EINVAL},
		{"frames that are not aligned", linux.TPACKET_V2, ringOf(4096, 1, 2050, 1), linux.EINVAL},
		{"frames without room for a header", linux.TPACKET_V2, ringOf(4096, 1, 32, 128), linux.EINVAL},
		{"frames larger than a block", linux.TPACKET_V2, ringOf(4096, 1, 8192, 1), linux.EINVAL},
		{"another number of frames", linux.TPACKET_V2, ringOf(4096, 1, 2048, 3), linux.EINVAL},
		{"larger than any memory", linux.TPACKET_V2, ringOf(1<<30, 1<<30, 2048, 1), linux.EINVAL},
		{"negative", linux.TPACKET_V2, ringOf(0x80000000, 1, 2048, 2), linux.EINVAL},
		{"private bytes without room", linux.TPACKET_V3, ringOf(4096, 1, 2048, 2, 0, 4000, 0), linux.EINVAL},
		{"private bytes with room for a header", linux.TPACKET_V3, ringOf(4096, 1, 2048, 2, 0, 3976, 0), 0},
		{"private bytes with too little room", linux.TPACKET_V3, ringOf(4096, 1, 2048, 2, 0, 3984, 0), linux.EINVAL},
		{"frames as large as a block", linux.TPACKET_V3, ringOf(4096, 1, 4096, 1, 0, 0, 0), 0},
		{"right", linux.TPACKET_V2, ringOf(4096, 1, 2048, 2), 0},
		{"right", linux.TPACKET_V3, ringOf(4096, 1, 2048, 2, 0, 0, 0), 0},
	} {
		s := fd(t)(p.Socket(linux.AF_PACKET, linux.SOCK_RAW, 0))
		ok(t, p.SetSockOpt(s, linux.SOL_PACKET, linux.PACKET_VERSION, socket.IntValue(c.version)))
		wantErrno(t, p.SetSockOpt(s, linux.SOL_PACKET, linux.PACKET_RX_RING, c.request), c.want, c.what)
	}
}
