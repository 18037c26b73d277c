package posix

import (
	"bytes"
	"encoding/binary"
	"syscall"
	"testing"

	"loam/stack"
	"loam/wire"
)

// Packet sockets as packet(7) has them; on loopback, whose frames have a header of zeros.

// htons is a protocol as socket(2) takes it.
func htons(kind wire.EtherType) int {
	return int(binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, uint16(kind))))
}

const testType wire.EtherType = 0x88b5

// loopbackFrame is a frame of the test's own type.
func loopbackFrame(payload string) []byte {
	return append(append(make([]byte, 12), 0x88, 0xb5), payload...)
}

func onLoopback(kind wire.EtherType) Address {
	return Address{Family: syscall.AF_PACKET, Link: LinkAddress{Protocol: kind, Index: 1}}
}

func TestPacketSocket(t *testing.T) {
	p := process(t)
	all := fd(t)(p.Socket(syscall.AF_PACKET, syscall.SOCK_RAW, htons(stack.LinkAll)))
	ok(t, p.Bind(all, onLoopback(0)))
	want := Address{Family: syscall.AF_PACKET, Link: LinkAddress{Protocol: stack.LinkAll, Index: 1, Hardware: arphrdLoopback, Len: 6}}
	if name, errno := p.GetSockName(all); name != want || errno != 0 {
		t.Errorf("it is at %+v, %v; want %+v", name, errno, want)
	}
	cooked := fd(t)(p.Socket(syscall.AF_PACKET, syscall.SOCK_DGRAM, 0))
	_, errno := p.Send(cooked, []byte("x"), Outgoing{To: onLoopback(testType)})
	wantErrno(t, errno, syscall.EINVAL, "an address without a station")
	to := onLoopback(testType)
	to.Link.Len = 6
	n, errno := p.Send(cooked, []byte("payload"), Outgoing{To: to})
	if ok(t, errno); n != 7 {
		t.Errorf("%d bytes are sent", n)
	}
	b := make([]byte, 100)
	r, errno := p.Recv(all, b, 0)
	ok(t, errno)
	if r.From.Link.Kind != uint8(stack.FrameOutgoing) || r.From.Link.Index != 1 || r.From.Link.Hardware != arphrdLoopback {
		t.Errorf("it comes from %+v", r.From)
	}
	if !bytes.HasSuffix(b[:r.N], []byte("payload")) {
		t.Errorf("%x", b[:r.N])
	}
}

func TestPacketSocketOptions(t *testing.T) {
	p := process(t)
	s := fd(t)(p.Socket(syscall.AF_PACKET, syscall.SOCK_RAW, htons(stack.LinkAll)))
	ok(t, p.Bind(s, onLoopback(0)))
	ok(t, p.SetSockOpt(s, solPacket, packetAuxData, intValue(1)))
	ok(t, p.SetSockOpt(s, syscall.SOL_SOCKET, soTimestampNS, intValue(1)))
	udp := fd(t)(p.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0))
	_, errno := p.Send(udp, []byte("data"), Outgoing{To: localhost(9)})
	ok(t, errno)
	b := make([]byte, 20)
	r, errno := p.Recv(s, b, 0)
	ok(t, errno)
	if r.N != 20 || r.Len != 14+20+8+4 || r.Flags != syscall.MSG_TRUNC || len(r.Control) != 2 {
		t.Errorf("%+v", r)
	}
	if aux := r.Control[1]; aux.Level != solPacket || aux.Type != packetAuxData || len(aux.Data) != 20 || binary.NativeEndian.Uint32(aux.Data[4:]) != 46 {
		t.Errorf("%+v", aux)
	}
	stats, errno := p.GetSockOpt(s, solPacket, packetStatistics)
	ok(t, errno)
	if frames := binary.NativeEndian.Uint32(stats); len(stats) != 8 || frames == 0 {
		t.Errorf("statistics: %x", stats)
	}
	mreq := binary.NativeEndian.AppendUint32(nil, 1)
	ok(t, p.SetSockOpt(s, solPacket, packetAddMembership, append(mreq, make([]byte, 12)...)))
	drop := []byte{6, 0, 0, 0, 0, 0, 0, 0} // RET #0
	ok(t, p.SetSockOpt(s, syscall.SOL_SOCKET, syscall.SO_ATTACH_FILTER, drop))
	for _, empty := p.Recv(s, b, syscall.MSG_DONTWAIT); empty == 0; {
		_, empty = p.Recv(s, b, syscall.MSG_DONTWAIT)
	}
	_, errno = p.Send(udp, []byte("data"), Outgoing{To: localhost(9)})
	ok(t, errno)
	_, errno = p.Recv(s, b, syscall.MSG_DONTWAIT)
	wantErrno(t, errno, syscall.EAGAIN, "the filter wants nothing")
	ok(t, p.SetSockOpt(s, syscall.SOL_SOCKET, soLockFilter, intValue(1)))
	wantErrno(t, p.SetSockOpt(s, syscall.SOL_SOCKET, syscall.SO_DETACH_FILTER, intValue(0)), syscall.EPERM, "it is locked")
}

func TestPacketSocketRefuses(t *testing.T) {
	p := process(t)
	s := fd(t)(p.Socket(syscall.AF_PACKET, syscall.SOCK_RAW, 0))
	_, errno := p.Socket(syscall.AF_PACKET, syscall.SOCK_STREAM, 0)
	wantErrno(t, errno, syscall.ESOCKTNOSUPPORT, "a stream")
	wantErrno(t, p.Bind(s, localhost(1)), syscall.EINVAL, "an address of AF_INET")
	wantErrno(t, p.Bind(s, Address{Family: syscall.AF_PACKET, Link: LinkAddress{Index: 99}}), syscall.ENODEV, "no such interface")
	wantErrno(t, p.Connect(s, onLoopback(0)), syscall.EOPNOTSUPP, "connect")
	wantErrno(t, p.Listen(s, 1), syscall.EOPNOTSUPP, "listen")
	_, errno = p.Send(s, loopbackFrame("x"), Outgoing{})
	wantErrno(t, errno, syscall.ENXIO, "no interface")
	_, errno = p.Send(s, make([]byte, 5), Outgoing{To: onLoopback(0)})
	wantErrno(t, errno, syscall.EINVAL, "shorter than a header")
	_, errno = p.Send(s, loopbackFrame("x"), Outgoing{To: Address{Family: syscall.AF_PACKET, Link: LinkAddress{Index: 99}}})
	wantErrno(t, errno, syscall.ENXIO, "to no interface")
	wantErrno(t, p.SetSockOpt(s, solPacket, 13, make([]byte, 16)), syscall.ENOPROTOOPT, "a ring to send by")
}

func TestLinkAddress(t *testing.T) {
	a := Address{Family: syscall.AF_PACKET, Link: LinkAddress{Protocol: 0x88cc, Index: 7, Hardware: 1, Kind: 4, Len: 6, MAC: [8]byte{1, 2, 3, 4, 5, 6}}}
	b := a.Append(nil)
	if want := []byte{17, 0, 0x88, 0xcc, 7, 0, 0, 0, 1, 0, 4, 6, 1, 2, 3, 4, 5, 6, 0, 0}; !bytes.Equal(b, want) {
		t.Errorf("%x, want %x", b, want)
	}
	if got, errno := ParseAddress(b); got != a || errno != 0 {
		t.Errorf("%+v, %v", got, errno)
	}
	if _, errno := ParseAddress(b[:19]); errno != syscall.EINVAL {
		t.Errorf("cut off: %v", errno)
	}
}
