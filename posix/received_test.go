package posix

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/posix/socket"
)

// socket(7), ip(7): control messages contain the arrival time and the destination of a datagram.
func TestReceivedWhenAndWhere(t *testing.T) {
	p := process(t)
	for family, c := range map[int]struct{ level, name int }{
		linux.AF_INET: {linux.IPPROTO_IP, linux.IP_ORIGDSTADDR}, linux.AF_INET6: {linux.IPPROTO_IPV6, linux.IPV6_ORIGDSTADDR},
	} {
		s := fd(t)(p.Socket(family, linux.SOCK_DGRAM, 0))
		ok(t, p.Bind(s, loopbackOf(family, 0)))
		name, _ := p.GetSockName(s)
		receive := func() (Received, time.Time) {
			t.Helper()
			before := time.Now()
			_, errno := p.Send(s, []byte("x"), Outgoing{To: name})
			ok(t, errno)
			r, errno := p.Recv(s, make([]byte, 9), 0)
			ok(t, errno)
			return r, before
		}
		wantTime := func(typ int, unit time.Duration) {
			t.Helper()
			r, before := receive()
			if len(r.Control) != 1 || r.Control[0].Level != linux.SOL_SOCKET || r.Control[0].Type != typ || len(r.Control[0].Data) != 16 {
				t.Fatalf("%+v", r.Control)
			}
			data := r.Control[0].Data
			at := time.Unix(int64(binary.NativeEndian.Uint64(data)), int64(binary.NativeEndian.Uint64(data[8:]))*int64(unit))
			if at.Before(before.Add(-time.Millisecond)) || at.After(time.Now().Add(time.Millisecond)) {
				t.Errorf("it came at %v, and was sent at %v", at, before)
			}
		}
		ok(t, p.SetSockOpt(s, linux.SOL_SOCKET, linux.SO_TIMESTAMP, socket.IntValue(1)))
		wantTime(linux.SO_TIMESTAMP, time.Microsecond)
		ok(t, p.SetSockOpt(s, linux.SOL_SOCKET, linux.SO_TIMESTAMPNS, socket.IntValue(1)))
		wantTime(linux.SO_TIMESTAMPNS, time.Nanosecond)
		if on, _ := p.GetSockOpt(s, linux.SOL_SOCKET, linux.SO_TIMESTAMP); !slices.Equal(on, socket.IntValue(0)) {
			t.Errorf("SO_TIMESTAMP beside SO_TIMESTAMPNS is %v", on)
		}
		ok(t, p.SetSockOpt(s, linux.SOL_SOCKET, linux.SO_TIMESTAMPNS, socket.IntValue(0)))
		ok(t, p.SetSockOpt(s, c.level, c.name, socket.IntValue(1)))
		r, _ := receive()
		if len(r.Control) != 1 || r.Control[0].Level != c.level || r.Control[0].Type != c.name || !slices.Equal(r.Control[0].Data, name.Append(nil)) {
			t.Errorf("sent to %v: %+v", name, r.Control)
		}
	}
}

// socket(7): SO_BINDTODEVICE restricts a socket to one interface.
func TestBindToDevice(t *testing.T) {
	p := process(t)
	for _, typ := range []int{linux.SOCK_DGRAM, linux.SOCK_RAW} {
		s := fd(t)(p.Socket(linux.AF_INET, typ, echoProtocol(linux.AF_INET)))
		wantErrno(t, p.SetSockOpt(s, linux.SOL_SOCKET, linux.SO_BINDTODEVICE, []byte("eth9")), linux.ENODEV, "an interface that there is not")
		ok(t, p.SetSockOpt(s, linux.SOL_SOCKET, linux.SO_BINDTODEVICE, []byte("lo\x00\x00")))
		if name, errno := p.GetSockOpt(s, linux.SOL_SOCKET, linux.SO_BINDTODEVICE); string(name) != "lo\x00" || errno != 0 {
			t.Errorf("bound to %q, %v", name, errno)
		}
		_, errno := p.Send(s, echoRequest(linux.AF_INET, 1, ""), Outgoing{To: localhost(0)})
		ok(t, errno)
		_, errno = p.Recv(s, make([]byte, 100), 0)
		ok(t, errno)
		ok(t, p.SetSockOpt(s, linux.SOL_SOCKET, linux.SO_BINDTODEVICE, nil))
		if name, _ := p.GetSockOpt(s, linux.SOL_SOCKET, linux.SO_BINDTODEVICE); len(name) != 0 {
			t.Errorf("bound to %q", name)
		}
	}
}
