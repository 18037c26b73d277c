package posix

import (
	"bytes"
	"encoding/binary"
	"testing"

	"loam/abi/linux"
	"loam/posix/socket"
	"loam/stack"
	"loam/wire"
)

// Packet sockets (packet(7)) on the loopback interface, whose frames have a link header of zeros.

// htons returns a protocol in the form that socket(2) expects.
func htons(kind wire.EtherType) int {
	return int(binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, uint16(kind))))
}

const testType wire.EtherType = 0x88b5

// loopbackFrame returns a frame of a type used only by these tests.
func loopbackFrame(payload string) []byte {
	return append(append(make([]byte, 12), 0x88, 0xb5), payload...)
}

func onLoopback(kind wire.EtherType) Address {
	return Address{Family: linux.AF_PACKET, Link: LinkAddress{Protocol: kind, Index: 1}}
}

func TestPacketSocket(t *testing.T) {
	p := process(t)
	all := fd(t)(p.Socket(linux.AF_PACKET, linux.SOCK_RAW, htons(stack.LinkAll)))
	ok(t, p.Bind(all, onLoopback(0)))
	want := Address{Family: linux.AF_PACKET, Link: LinkAddress{Protocol: stack.LinkAll, Index: 1, Hardware: linux.ARPHRD_LOOPBACK, Len: 6}}
	if name, errno := p.GetSockName(all); name != want || errno != 0 {
		t.Errorf("it is at %+v, %v; want %+v", name, errno, want)
	}
	cooked := fd(t)(p.Socket(linux.AF_PACKET, linux.SOCK_DGRAM, 0))
	_, errno := p.Send(cooked, []byte("x"), Outgoing{To: onLoopback(testType)})
	wantErrno(t, errno, linux.EINVAL, "an address without a station")
	to := onLoopback(testType)
	to.Link.Len = 6
	n, errno := p.Send(cooked, []byte("payload"), Outgoing{To: to})
	if ok(t, errno); n != 7 {
		t.Errorf("%d bytes are sent", n)
	}
	b := make([]byte, 100)
	r, errno := p.Recv(all, b, 0)
	ok(t, errno)
	if r.From.Link.Kind != uint8(stack.FrameOutgoing) || r.From.Link.Index != 1 || r.From.Link.Hardware != linux.ARPHRD_LOOPBACK {
		t.Errorf("it comes from %+v", r.From)
	}
	if !bytes.HasSuffix(b[:r.N], []byte("payload")) {
		t.Errorf("%x", b[:r.N])
	}
}

func TestPacketSocketOptions(t *testing.T) {
	p := process(t)
	s := fd(t)(p.Socket(linux.AF_PACKET, linux.SOCK_RAW, htons(stack.LinkAll)))
	ok(t, p.Bind(s, onLoopback(0)))
	ok(t, p.SetSockOpt(s, linux.SOL_PACKET, linux.PACKET_AUXDATA, socket.IntValue(1)))
	ok(t, p.SetSockOpt(s, linux.SOL_SOCKET, linux.SO_TIMESTAMPNS, socket.IntValue(1)))
	udp := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0))
	_, errno := p.Send(udp, []byte("data"), Outgoing{To: localhost(9)})
	ok(t, errno)
	b := make([]byte, 20)
	r, errno := p.Recv(s, b, 0)
	ok(t, errno)
	if r.N != 20 || r.Len != 14+20+8+4 || r.Flags != linux.MSG_TRUNC || len(r.Control) != 2 {
		t.Errorf("%+v", r)
	}
	if aux := r.Control[1]; aux.Level != linux.SOL_PACKET || aux.Type != linux.PACKET_AUXDATA || len(aux.Data) != 20 || binary.NativeEndian.Uint32(aux.Data[4:]) != 46 {
		t.Errorf("%+v", aux)
	}
	stats, errno := p.GetSockOpt(s, linux.SOL_PACKET, linux.PACKET_STATISTICS)
	ok(t, errno)
	if frames := binary.NativeEndian.Uint32(stats); len(stats) != 8 || frames == 0 {
		t.Errorf("statistics: %x", stats)
	}
	mreq := binary.NativeEndian.AppendUint32(nil, 1)
	ok(t, p.SetSockOpt(s, linux.SOL_PACKET, linux.PACKET_ADD_MEMBERSHIP, append(mreq, make([]byte, 12)...)))
	drop := []byte{6, 0, 0, 0, 0, 0, 0, 0} // RET #0
	ok(t, p.SetSockOpt(s, linux.SOL_SOCKET, linux.SO_ATTACH_FILTER, drop))
	for _, empty := p.Recv(s, b, linux.MSG_DONTWAIT); empty == 0; {
		_, empty = p.Recv(s, b, linux.MSG_DONTWAIT)
	}
	_, errno = p.Send(udp, []byte("data"), Outgoing{To: localhost(9)})
	ok(t, errno)
	_, errno = p.Recv(s, b, linux.MSG_DONTWAIT)
	wantErrno(t, errno, linux.EAGAIN, "the filter wants nothing")
	ok(t, p.SetSockOpt(s, linux.SOL_SOCKET, linux.SO_LOCK_FILTER, socket.IntValue(1)))
	wantErrno(t, p.SetSockOpt(s, linux.SOL_SOCKET, linux.SO_DETACH_FILTER, socket.IntValue(0)), linux.EPERM, "it is locked")
}

func TestPacketSocketRefuses(t *testing.T) {
	p := process(t)
	s := fd(t)(p.Socket(linux.AF_PACKET, linux.SOCK_RAW, 0))
	_, errno := p.Socket(linux.AF_PACKET, linux.SOCK_STREAM, 0)
	wantErrno(t, errno, linux.ESOCKTNOSUPPORT, "a stream")
	wantErrno(t, p.Bind(s, localhost(1)), linux.EINVAL, "an address of AF_INET")
	wantErrno(t, p.Bind(s, Address{Family: linux.AF_PACKET, Link: LinkAddress{Index: 99}}), linux.ENODEV, "no such interface")
	wantErrno(t, p.Connect(s, onLoopback(0)), linux.EOPNOTSUPP, "connect")
	wantErrno(t, p.Listen(s, 1), linux.EOPNOTSUPP, "listen")
	_, errno = p.Send(s, loopbackFrame("x"), Outgoing{})
	wantErrno(t, errno, linux.ENXIO, "no interface")
	_, errno = p.Send(s, make([]byte, 5), Outgoing{To: onLoopback(0)})
	wantErrno(t, errno, linux.EINVAL, "shorter than a header")
	_, errno = p.Send(s, loopbackFrame("x"), Outgoing{To: Address{Family: linux.AF_PACKET, Link: LinkAddress{Index: 99}}})
	wantErrno(t, errno, linux.ENXIO, "to no interface")
	wantErrno(t, p.SetSockOpt(s, linux.SOL_PACKET, 13, make([]byte, 16)), linux.ENOPROTOOPT, "a ring to send by")
}

func TestLinkAddress(t *testing.T) {
	a := Address{Family: linux.AF_PACKET, Link: LinkAddress{Protocol: 0x88cc, Index: 7, Hardware: 1, Kind: 4, Len: 6, MAC: [8]byte{1, 2, 3, 4, 5, 6}}}
	b := a.Append(nil)
	if want := []byte{17, 0, 0x88, 0xcc, 7, 0, 0, 0, 1, 0, 4, 6, 1, 2, 3, 4, 5, 6, 0, 0}; !bytes.Equal(b, want) {
		t.Errorf("%x, want %x", b, want)
	}
	if got, errno := socket.ParseAddress(b); got != a || errno != 0 {
		t.Errorf("%+v, %v", got, errno)
	}
	if _, errno := socket.ParseAddress(b[:19]); errno != linux.EINVAL {
		t.Errorf("cut off: %v", errno)
	}
}
