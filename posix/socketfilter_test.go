package posix

import (
	"encoding/binary"
	"testing"

	"loam/abi/linux"
	"loam/posix/socket"
)

// filterOf encodes an array of struct sock_filter; each element is code, jt, jf, k.
func filterOf(list ...[4]uint32) []byte {
	var b []byte
	for _, i := range list {
		b = append(binary.NativeEndian.AppendUint16(b, uint16(i[0])), byte(i[1]), byte(i[2]))
		b = binary.NativeEndian.AppendUint32(b, i[3])
	}
	return b
}

// socket(7): a filter sees a datagram from its UDP header on, and returns how much of it the program
// receives.
func TestSocketFilter(t *testing.T) {
	p := process(t)
	s := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0))
	set := func(name int, value []byte) Errno { return p.SetSockOpt(s, linux.SOL_SOCKET, name, value) }
	wantErrno(t, set(linux.SO_DETACH_FILTER, socket.IntValue(0)), linux.ENOENT, "taking away none")
	wantErrno(t, set(linux.SO_ATTACH_FILTER, nil), linux.EINVAL, "a filter of nothing")
	const loadByte, jumpEqual, give = 0x30, 0x15, 0x06
	ok(t, set(linux.SO_ATTACH_FILTER, filterOf(
		[4]uint32{loadByte, 0, 0, 8}, [4]uint32{jumpEqual, 0, 1, 'y'}, [4]uint32{give, 0, 0, 8 + 3}, [4]uint32{give, 0, 0, 0})))
	ok(t, p.Bind(s, localhost(0)))
	name, _ := p.GetSockName(s)
	c := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0))
	for _, text := range []string{"no", "yes and more"} {
		_, errno := p.Send(c, []byte(text), Outgoing{To: name})
		ok(t, errno)
	}
	b := make([]byte, 20)
	r, errno := p.Recv(s, b, 0)
	ok(t, errno)
	if got := string(b[:r.N]); got != "yes" || r.Len != 3 {
		t.Errorf("%q of %d, want %q", got, r.Len, "yes")
	}
	_, errno = p.Recv(s, b, linux.MSG_DONTWAIT)
	wantErrno(t, errno, linux.EAGAIN, "after it")
	ok(t, set(linux.SO_DETACH_FILTER, socket.IntValue(0)))
	_, errno = p.Send(c, []byte("no"), Outgoing{To: name})
	ok(t, errno)
	if r, errno := p.Recv(s, b, 0); errno != 0 || r.N != 2 {
		t.Errorf("without the filter: %d bytes, %v", r.N, errno)
	}
}
