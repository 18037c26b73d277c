package posix

import (
	"bytes"
	"encoding/binary"
	"math"
	"net/netip"
	"runtime"
	"syscall"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/link"
	"loam/posix/netdevice"
	"loam/posix/socket"
)

// A blocking socket waits, with SO_RCVTIMEO for a limited time. A non-blocking socket does not wait
// (socket(7)).
func TestTCPBlocking(t *testing.T) {
	p := process(t)
	client, server := tcpPair(t, p, 0)
	go p.Write(client, []byte("hello"))
	buf := make([]byte, 10)
	if n, errno := p.Read(server, buf); string(buf[:max(n, 0)]) != "hello" || errno != 0 {
		t.Errorf("read %q, %v", buf[:max(n, 0)], errno)
	}
	ok(t, p.SetSockOpt(server, linux.SOL_SOCKET, linux.SO_RCVTIMEO, socket.TimeValue(time.Millisecond)))
	_, errno := p.Read(server, buf)
	wantErrno(t, errno, linux.EAGAIN, "SO_RCVTIMEO")
	_, errno = p.Recv(server, buf, linux.MSG_DONTWAIT)
	wantErrno(t, errno, linux.EAGAIN, "MSG_DONTWAIT")

	const size = 32 << 20
	go func() {
		if n, errno := p.Write(client, make([]byte, size)); n != size || errno != 0 {
			t.Errorf("a blocking write wrote %d, %v", n, errno)
		}
		p.Close(client)
	}()
	ok(t, p.SetSockOpt(server, linux.SOL_SOCKET, linux.SO_RCVTIMEO, socket.TimeValue(0)))
	r, errno := p.Recv(server, make([]byte, 1<<20), linux.MSG_WAITALL)
	if r.N != 1<<20 || errno != 0 {
		t.Errorf("MSG_WAITALL: %d, %v", r.N, errno)
	}
	total := r.N
	for buf = make([]byte, 1<<20); ; {
		n, errno := p.Read(server, buf)
		ok(t, errno)
		if n == 0 {
			break
		}
		total += n
	}
	if total != size {
		t.Errorf("read %d bytes", total)
	}
}

// The states of connect(2) on a non-blocking socket.
func TestTCPConnectStates(t *testing.T) {
	p := process(t)
	l := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM|linux.SOCK_NONBLOCK, 0))
	_, _, errno := p.Accept4(l, 0)
	wantErrno(t, errno, linux.EINVAL, "accept before listen")
	ok(t, p.Bind(l, localhost(0)))
	wantErrno(t, p.Bind(l, localhost(0)), linux.EINVAL, "bind twice")
	ok(t, p.Listen(l, 1))
	ok(t, p.Listen(l, 2))
	name, _ := p.GetSockName(l)
	_, _, errno = p.Accept4(l, 0)
	wantErrno(t, errno, linux.EAGAIN, "accept of nobody")

	c := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM|linux.SOCK_NONBLOCK, 0))
	_, errno = p.GetPeerName(c)
	wantErrno(t, errno, linux.ENOTCONN, "peer before connect")
	_, errno = p.Read(c, make([]byte, 1))
	wantErrno(t, errno, linux.ENOTCONN, "read before connect")
	wantErrno(t, p.Connect(c, name), linux.EINPROGRESS, "connect")
	fds := []PollFD{{FD: c, Events: PollOut}}
	if n, errno := p.Poll(fds, long); n != 1 || errno != 0 || fds[0].Revents != PollOut {
		t.Errorf("poll: %d, %v, %v", n, errno, fds)
	}
	if v, errno := p.GetSockOpt(c, linux.SOL_SOCKET, linux.SO_ERROR); !bytes.Equal(v, socket.IntValue(0)) || errno != 0 {
		t.Errorf("SO_ERROR: %v, %v", v, errno)
	}
	ok(t, p.Connect(c, name)) // this call reports success, and later ones do not
	wantErrno(t, p.Connect(c, name), linux.EISCONN, "connect once more")

	ok(t, p.Close(l))
	refused := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM, 0))
	wantErrno(t, p.Connect(refused, name), linux.ECONNREFUSED, "nobody listens")
	wantErrno(t, p.Connect(refused, Address{Family: linux.AF_UNIX, Name: "/x"}), linux.EAFNOSUPPORT, "another family")
	far := socket.Inet(netip.MustParseAddrPort("192.0.2.1:1"))
	wantErrno(t, p.Connect(refused, far), linux.ENETUNREACH, "no route")
	wantErrno(t, p.Bind(refused, far), linux.EADDRNOTAVAIL, "not our address")
}

// With SO_LINGER and a time of 0, close sends a reset.
func TestTCPReset(t *testing.T) {
	p := process(t)
	client, server := tcpPair(t, p, 0)
	ok(t, p.SetSockOpt(server, linux.SOL_SOCKET, linux.SO_LINGER, append(socket.IntValue(1), socket.IntValue(0)...)))
	_, errno := p.Write(server, []byte("data"))
	ok(t, errno)
	ok(t, p.Close(server))
	_, errno = p.Poll([]PollFD{{FD: client}}, long) // waits until poll(2) reports PollHup
	ok(t, errno)
	_, errno = p.GetPeerName(client)
	wantErrno(t, errno, linux.ENOTCONN, "the peer, while data is unread")
	wantErrno(t, p.Shutdown(client, linux.SHUT_WR), linux.ENOTCONN, "shutdown")
	if n, errno := p.Read(client, make([]byte, 9)); n != 4 || errno != 0 {
		t.Errorf("data in front of the reset: %d bytes, %v", n, errno)
	}
	_, errno = p.Read(client, make([]byte, 1))
	wantErrno(t, errno, linux.ECONNRESET, "read")
	_, errno = p.Write(client, make([]byte, 1))
	wantErrno(t, errno, linux.EPIPE, "write")
}

// accept returns the address of a client that has reset the connection.
func TestTCPResetBeforeAccept(t *testing.T) {
	p := process(t)
	l := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM, 0))
	ok(t, p.Bind(l, localhost(0)))
	ok(t, p.Listen(l, 5))
	name, _ := p.GetSockName(l)
	client := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM, 0))
	ok(t, p.Connect(client, name))
	local, _ := p.GetSockName(client)
	ok(t, p.SetSockOpt(client, linux.SOL_SOCKET, linux.SO_LINGER, append(socket.IntValue(1), socket.IntValue(0)...)))
	ok(t, p.Close(client))
	server, peer, errno := p.Accept4(l, 0)
	if ok(t, errno); peer != local {
		t.Errorf("accept returns %v, want %v", peer, local)
	}
	_, errno = p.Read(server, make([]byte, 1))
	wantErrno(t, errno, linux.ECONNRESET, "read")
	_, errno = p.GetPeerName(server)
	wantErrno(t, errno, linux.ENOTCONN, "the peer")
}

func TestTCPHalfClose(t *testing.T) {
	p := process(t)
	client, server := tcpPair(t, p, 0)
	ok(t, p.Shutdown(client, linux.SHUT_WR))
	if n, errno := p.Read(server, make([]byte, 1)); n != 0 || errno != 0 {
		t.Errorf("end: %d, %v", n, errno)
	}
	p.Write(server, []byte("still"))
	buf := make([]byte, 10)
	r, errno := p.Recv(client, buf, linux.MSG_PEEK)
	if string(buf[:r.N]) != "still" || errno != 0 {
		t.Errorf("peek %q, %v", buf[:r.N], errno)
	}
	if n, errno := p.Ioctl(client, linux.FIONREAD, 0); n != 5 || errno != 0 {
		t.Errorf("FIONREAD: %d, %v", n, errno)
	}
	wantErrno(t, p.Shutdown(client, 5), linux.EINVAL, "how")
}

func TestTCPOptions(t *testing.T) {
	p := process(t)
	client, _ := tcpPair(t, p, 0)
	fresh := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM, 0))
	for _, s := range []int{client, fresh} {
		for _, c := range []struct{ level, name, set, want int }{
			{linux.SOL_SOCKET, linux.SO_KEEPALIVE, 5, 1},
			{linux.SOL_SOCKET, linux.SO_RCVBUF, 50_000, 100_000},
			{linux.SOL_SOCKET, linux.SO_RCVBUFFORCE, 50_000, 100_000},
			{linux.SOL_SOCKET, linux.SO_SNDBUFFORCE, 50_000, 100_000},
			{linux.SOL_SOCKET, linux.SO_PRIORITY, 3, 3},
			{linux.SOL_SOCKET, linux.SO_BROADCAST, 1, 1},
			{linux.IPPROTO_TCP, linux.TCP_NODELAY, 1, 1},
			{linux.IPPROTO_TCP, linux.TCP_KEEPIDLE, 9, 9},
			{linux.IPPROTO_TCP, linux.TCP_KEEPCNT, 3, 3},
			{linux.IPPROTO_TCP, linux.TCP_USER_TIMEOUT, 1500, 1500},
			{linux.IPPROTO_TCP, linux.TCP_LINGER2, 5, 5},
			{linux.IPPROTO_TCP, linux.TCP_LINGER2, 200, 120},
			{linux.IPPROTO_TCP, linux.TCP_LINGER2, -5, -1},
			{linux.IPPROTO_TCP, linux.TCP_LINGER2, 0, 60},
			{linux.IPPROTO_TCP, linux.TCP_DEFER_ACCEPT, 1, 1},
			{linux.IPPROTO_TCP, linux.TCP_DEFER_ACCEPT, 5, 7},
			{linux.IPPROTO_TCP, linux.TCP_DEFER_ACCEPT, 200, 247},
			{linux.IPPROTO_TCP, linux.TCP_DEFER_ACCEPT, 0, 0},
			{linux.IPPROTO_IP, linux.IP_TOS, 16, 16},
			{linux.IPPROTO_IP, linux.IP_TTL, 10, 10},
		} {
			ok(t, p.SetSockOpt(s, c.level, c.name, socket.IntValue(c.set)))
			if v, errno := p.GetSockOpt(s, c.level, c.name); errno != 0 || !bytes.Equal(v, socket.IntValue(c.want)) {
				t.Errorf("option %d/%d: % x, %v, want %d", c.level, c.name, v, errno, c.want)
			}
		}
		wantErrno(t, p.SetSockOpt(s, linux.IPPROTO_TCP, linux.TCP_KEEPCNT, socket.IntValue(0)), linux.EINVAL, "out of range")
		wantErrno(t, p.SetSockOpt(s, linux.IPPROTO_TCP, linux.TCP_NODELAY, []byte{1}), linux.EINVAL, "too short")
		wantErrno(t, p.SetSockOpt(s, linux.IPPROTO_TCP, 999, socket.IntValue(1)), linux.ENOPROTOOPT, "unknown")
		_, errno := p.GetSockOpt(s, 999, 1)
		wantErrno(t, errno, linux.EOPNOTSUPP, "unknown level")
	}
	info, errno := p.GetSockOpt(client, linux.IPPROTO_TCP, linux.TCP_INFO)
	if errno != 0 || len(info) != 232 || info[0] != 1 {
		t.Errorf("TCP_INFO: %d bytes, state %d, %v", len(info), info[0], errno)
	}
}

func TestUDP(t *testing.T) {
	p := process(t)
	a := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_DGRAM|linux.SOCK_NONBLOCK, 0))
	b := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0))
	_, errno := p.Recv(a, make([]byte, 1), 0)
	wantErrno(t, errno, linux.EAGAIN, "receive before bind")
	_, errno = p.Send(b, []byte("x"), Outgoing{})
	wantErrno(t, errno, linux.EDESTADDRREQ, "no destination")
	ok(t, p.Bind(a, localhost(0)))
	name, _ := p.GetSockName(a)
	ok(t, p.SetSockOpt(a, linux.IPPROTO_IP, linux.IP_PKTINFO, socket.IntValue(1)))
	_, errno = p.Send(b, []byte("hello"), Outgoing{To: name})
	ok(t, errno)
	fds := []PollFD{{FD: a, Events: PollIn}}
	p.Poll(fds, long)
	if n, errno := p.Ioctl(a, linux.FIONREAD, 0); n != 5 || errno != 0 {
		t.Errorf("FIONREAD: %d, %v", n, errno)
	}
	buf := make([]byte, 3)
	r, errno := p.Recv(a, buf, 0)
	if errno != 0 || string(buf) != "hel" || r.Len != 5 || r.Flags&linux.MSG_TRUNC == 0 {
		t.Errorf("%q, %+v, %v", buf, r, errno)
	}
	if len(r.Control) != 1 || len(r.Control[0].Data) != 12 || binary.NativeEndian.Uint32(r.Control[0].Data) != 1 {
		t.Errorf("IP_PKTINFO: %+v", r.Control)
	}
	ok(t, p.Connect(a, r.From))
	if peer, errno := p.GetPeerName(a); errno != 0 || peer != r.From {
		t.Errorf("peer %v, %v", peer, errno)
	}
	p.Write(a, nil)
	if r, errno := p.Recv(b, make([]byte, 1), 0); errno != 0 || r.N != 0 || r.From != name {
		t.Errorf("empty datagram: %+v, %v", r, errno)
	}
	_, errno = p.Write(a, make([]byte, 70_000))
	wantErrno(t, errno, linux.EMSGSIZE, "too long")
	wantErrno(t, p.Listen(a, 1), linux.EOPNOTSUPP, "listen")
}

// carryDatagram sends a datagram over the loopback interface and receives it.
func carryDatagram(t *testing.T, p *Process) {
	t.Helper()
	a := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0))
	ok(t, p.Bind(a, localhost(0)))
	name, _ := p.GetSockName(a)
	_, errno := p.Send(a, []byte("x"), Outgoing{To: name})
	ok(t, errno)
	_, errno = p.Recv(a, make([]byte, 1), 0)
	ok(t, errno)
}

// askNetlink sends a request with sequence number 1 and returns all answers.
func askNetlink(t *testing.T, p *Process, s int, typ, flags uint16, body []byte) []syscall.NetlinkMessage {
	t.Helper()
	b := binary.NativeEndian.AppendUint32(nil, uint32(linux.NLMSG_HDRLEN+len(body)))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = binary.NativeEndian.AppendUint16(b, linux.NLM_F_REQUEST|flags)
	b = append(append(b, 1, 0, 0, 0, 0, 0, 0, 0), body...)
	_, errno := p.Send(s, b, Outgoing{To: Address{Family: linux.AF_NETLINK}})
	ok(t, errno)
	var all []syscall.NetlinkMessage
	for {
		buf := make([]byte, 4096)
		r, errno := p.Recv(s, buf, linux.MSG_DONTWAIT)
		if errno == linux.EAGAIN {
			return all
		}
		ok(t, errno)
		messages, err := syscall.ParseNetlinkMessage(buf[:r.N])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, messages...)
	}
}

// Interfaces and addresses can be read by a netlink dump, as package net does.
func TestNetlink(t *testing.T) {
	p := process(t)
	carryDatagram(t, p)
	s := fd(t)(p.Socket(linux.AF_NETLINK, linux.SOCK_RAW, linux.NETLINK_ROUTE))
	ok(t, p.Bind(s, Address{Family: linux.AF_NETLINK}))
	ask := func(typ, flags uint16) []syscall.NetlinkMessage {
		t.Helper()
		return askNetlink(t, p, s, typ, flags, []byte{linux.AF_UNSPEC})
	}
	links := ask(linux.RTM_GETLINK, linux.NLM_F_REQUEST|linux.NLM_F_DUMP)
	if len(links) != 2 || links[0].Header.Type != linux.RTM_NEWLINK || links[1].Header.Type != linux.NLMSG_DONE {
		t.Fatalf("links: %+v", links)
	}
	attrs, err := syscall.ParseNetlinkRouteAttr(&links[0])
	if err != nil || string(attrs[0].Value) != "lo\x00" {
		t.Errorf("attributes: %v, %v", attrs, err)
	}
	wantLinkStats(t, attrs, netdevice.All(p.net)[0].Device().Stats())
	addrs := ask(linux.RTM_GETADDR, linux.NLM_F_REQUEST|linux.NLM_F_DUMP)
	if len(addrs) != 3 || addrs[0].Header.Type != linux.RTM_NEWADDR {
		t.Errorf("addresses: %+v", addrs)
	}
	refused := ask(linux.RTM_NEWLINK, linux.NLM_F_REQUEST)
	if len(refused) != 1 || int32(binary.NativeEndian.Uint32(refused[0].Data)) != -int32(linux.EPERM) {
		t.Errorf("a change: %+v", refused)
	}
}

// wantLinkStats checks both forms of an interface's counters (struct rtnl_link_stats64 of
// linux/if_link.h).
func wantLinkStats(t *testing.T, attrs []syscall.NetlinkRouteAttr, want link.Stats) {
	t.Helper()
	sent := 0
	for _, a := range attrs {
		switch b := a.Value; a.Attr.Type {
		case linux.IFLA_STATS:
			sent++
			if len(b) != 96 || binary.NativeEndian.Uint32(b) != uint32(want.RxFrames) || binary.NativeEndian.Uint32(b[12:]) != uint32(want.TxBytes) {
				t.Errorf("IFLA_STATS: %d bytes, %v; want %+v", len(b), b, want)
			}
		case linux.IFLA_STATS64:
			sent++
			if len(b) != 200 || binary.NativeEndian.Uint64(b[8:]) != want.TxFrames || binary.NativeEndian.Uint64(b[16:]) != want.RxBytes {
				t.Errorf("IFLA_STATS64: %d bytes, %v; want %+v", len(b), b, want)
			}
		}
	}
	if sent != 2 || want.TxFrames == 0 {
		t.Errorf("%d of two forms of %+v", sent, want)
	}
}

func TestUrgentByte(t *testing.T) {
	p := process(t)
	client, server := tcpPair(t, p, linux.SOCK_NONBLOCK)
	if n, errno := p.Send(client, []byte("abc"), Outgoing{Flags: linux.MSG_OOB}); n != 3 || errno != 0 {
		t.Fatalf("%d, %v", n, errno)
	}
	buf := make([]byte, 10)
	for {
		r, errno := p.Recv(server, buf, linux.MSG_OOB|linux.MSG_PEEK)
		if errno == 0 && r.N == 1 && buf[0] == 'c' && r.Flags&linux.MSG_OOB != 0 {
			break
		}
		if errno != linux.EAGAIN && errno != linux.EINVAL { // EAGAIN: the byte is still in transit
			t.Fatalf("%q, %v", buf[:max(r.N, 0)], errno)
		}
		runtime.Gosched()
	}
	if r, errno := p.Recv(server, buf, 0); string(buf[:r.N]) != "ab" || errno != 0 {
		t.Errorf("%q, %v", buf[:r.N], errno)
	}
	if at, errno := p.Ioctl(server, linux.SIOCATMARK, 0); at != 1 || errno != 0 {
		t.Errorf("SIOCATMARK: %d, %v", at, errno)
	}
	_, errno := p.Recv(server, buf, 0)
	wantErrno(t, errno, linux.EAGAIN, "behind the mark")
	udp := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_DGRAM, 0))
	_, errno = p.Send(udp, []byte("x"), Outgoing{Flags: linux.MSG_OOB})
	wantErrno(t, errno, linux.EOPNOTSUPP, "UDP")
}

// TCP_MAXSEG limits the segments of connections opened later (tcp(7)).
func TestMaxSegment(t *testing.T) {
	p := process(t)
	key := linux.TCP_MAXSEG
	l := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM, 0))
	ok(t, p.SetSockOpt(l, linux.IPPROTO_TCP, key, socket.IntValue(1100)))
	wantErrno(t, p.SetSockOpt(l, linux.IPPROTO_TCP, key, socket.IntValue(87)), linux.EINVAL, "a size below the least")
	wantErrno(t, p.SetSockOpt(l, linux.IPPROTO_TCP, key, socket.IntValue(32768)), linux.EINVAL, "a size above the most")
	ok(t, p.Bind(l, localhost(0)))
	ok(t, p.Listen(l, 5))
	name, errno := p.GetSockName(l)
	ok(t, errno)
	client := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM, 0))
	ok(t, p.Connect(client, name))
	server, _, errno := p.Accept4(l, 0)
	ok(t, errno)
	const timestamps = 12 // bytes of the timestamps option in each segment
	for name, c := range map[string]struct{ fd, want int }{
		"listener": {l, 1100}, "server": {server, 1100 - timestamps}, "client": {client, 1100 - timestamps},
	} {
		b, errno := p.GetSockOpt(c.fd, linux.IPPROTO_TCP, key)
		ok(t, errno)
		if got, _ := socket.ParseInt(b); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// Int options of level IPPROTO_IP accept one byte, as on Linux (do_ip_setsockopt).
func TestByteForInt(t *testing.T) {
	p := process(t)
	for _, typ := range []int{linux.SOCK_STREAM, linux.SOCK_DGRAM} {
		s := fd(t)(p.Socket(linux.AF_INET, typ, 0))
		ok(t, p.SetSockOpt(s, linux.IPPROTO_IP, linux.IP_TOS, []byte{16}))
		b, errno := p.GetSockOpt(s, linux.IPPROTO_IP, linux.IP_TOS)
		ok(t, errno)
		if got, _ := socket.ParseInt(b); got != 16 {
			t.Errorf("IP_TOS of type %d is %d, want 16", typ, got)
		}
		wantErrno(t, p.SetSockOpt(s, linux.IPPROTO_TCP, linux.TCP_CORK, []byte{1}), map[int]Errno{
			linux.SOCK_STREAM: linux.EINVAL, linux.SOCK_DGRAM: linux.ENOPROTOOPT,
		}[typ], "a byte for an int of another level")
	}
}

// tcp(7), linux/inet_diag.h: TCP_CONGESTION selects the algorithm of an open or future connection;
// TCP_CC_INFO returns the algorithm's data. socket(7): SO_MAX_PACING_RATE limits the rate.
func TestCongestionOfSocket(t *testing.T) {
	p := process(t)
	client, _ := tcpPair(t, p, 0)
	fresh := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM, 0))
	if v, errno := p.GetSockOpt(client, linux.IPPROTO_TCP, linux.TCP_CC_INFO); errno != 0 || len(v) != 0 {
		t.Errorf("TCP_CC_INFO of cubic: % x, %v", v, errno)
	}
	for _, s := range []int{client, fresh} {
		ok(t, p.SetSockOpt(s, linux.IPPROTO_TCP, linux.TCP_CONGESTION, []byte("bbr")))
		if v, errno := p.GetSockOpt(s, linux.IPPROTO_TCP, linux.TCP_CONGESTION); errno != 0 || string(v) != "bbr"+string(make([]byte, 13)) {
			t.Errorf("TCP_CONGESTION: %q, %v", v, errno)
		}
		if v, errno := p.GetSockOpt(s, linux.SOL_SOCKET, linux.SO_MAX_PACING_RATE); errno != 0 || binary.NativeEndian.Uint64(v) != math.MaxUint64 {
			t.Errorf("SO_MAX_PACING_RATE: % x, %v, want no bound", v, errno)
		}
		ok(t, p.SetSockOpt(s, linux.SOL_SOCKET, linux.SO_MAX_PACING_RATE, socket.IntValue(1_000_000)))
		if v, errno := p.GetSockOpt(s, linux.SOL_SOCKET, linux.SO_MAX_PACING_RATE); errno != 0 || binary.NativeEndian.Uint64(v) != 1_000_000 {
			t.Errorf("SO_MAX_PACING_RATE: % x, %v", v, errno)
		}
	}
	if v, errno := p.GetSockOpt(client, linux.IPPROTO_TCP, linux.TCP_CC_INFO); errno != 0 || len(v) != 20 || binary.NativeEndian.Uint32(v[12:]) != 277*256/100 {
		t.Errorf("TCP_CC_INFO: % x, %v", v, errno)
	}
	ok(t, p.SetSockOpt(client, linux.SOL_SOCKET, linux.SO_MAX_PACING_RATE, socket.IntValue(-1)))
	if v, _ := p.GetSockOpt(client, linux.SOL_SOCKET, linux.SO_MAX_PACING_RATE); binary.NativeEndian.Uint64(v) != math.MaxUint64 {
		t.Errorf("SO_MAX_PACING_RATE: % x, want no bound", v)
	}
}

// tcp(7): TCP_CONGESTION accepts the names of existing algorithms only. TCP_FASTOPEN_CONNECT can only
// be set before connect.
func TestTCPOptionsOfDialers(t *testing.T) {
	p := process(t)
	client, _ := tcpPair(t, p, 0)
	fresh := fd(t)(p.Socket(linux.AF_INET, linux.SOCK_STREAM, 0))
	for _, s := range []int{client, fresh} {
		for _, name := range []string{"cubic", "cubic\x00\x00"} {
			ok(t, p.SetSockOpt(s, linux.IPPROTO_TCP, linux.TCP_CONGESTION, []byte(name)))
		}
		for _, name := range []string{"reno", "cubi", "\x00", "a name that is longer than any"} {
			wantErrno(t, p.SetSockOpt(s, linux.IPPROTO_TCP, linux.TCP_CONGESTION, []byte(name)), linux.ENOENT, name)
		}
		wantErrno(t, p.SetSockOpt(s, linux.IPPROTO_TCP, linux.TCP_CONGESTION, nil), linux.EINVAL, "no name")
		if v, errno := p.GetSockOpt(s, linux.IPPROTO_TCP, linux.TCP_CONGESTION); errno != 0 || string(v) != "cubic"+string(make([]byte, 11)) {
			t.Errorf("TCP_CONGESTION: %q, %v", v, errno)
		}
		wantErrno(t, p.SetSockOpt(s, linux.IPPROTO_TCP, linux.TCP_FASTOPEN_CONNECT, socket.IntValue(2)), linux.EINVAL, "neither on nor off")
	}
	ok(t, p.SetSockOpt(fresh, linux.IPPROTO_TCP, linux.TCP_FASTOPEN_CONNECT, socket.IntValue(1)))
	if v, errno := p.GetSockOpt(fresh, linux.IPPROTO_TCP, linux.TCP_FASTOPEN_CONNECT); errno != 0 || !bytes.Equal(v, socket.IntValue(1)) {
		t.Errorf("TCP_FASTOPEN_CONNECT: % x, %v, want 1", v, errno)
	}
	wantErrno(t, p.SetSockOpt(client, linux.IPPROTO_TCP, linux.TCP_FASTOPEN_CONNECT, socket.IntValue(1)), linux.EINVAL, "connected already")
}
