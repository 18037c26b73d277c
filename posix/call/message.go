package call

import (
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix"
	"loam/posix/socket"
)

// Calls that send and receive messages.

func sendto(c Caller, a Args) (uint64, linux.Errno) {
	if errno := c.isSocket(fd(a.A1)); errno != 0 {
		return fail(errno)
	}
	m := posix.Outgoing{Flags: number(a.A4)}
	if a.A5 != 0 {
		var errno linux.Errno
		if m.To, errno = c.address(a.A5, number(a.A6)); errno != 0 {
			return fail(errno)
		}
	}
	return c.drain(fd(a.A1), a.A2, int(a.A3), func(b []byte) (int, linux.Errno) { return c.Process.Send(fd(a.A1), b, m) })
}

func recvfrom(c Caller, a Args) (uint64, linux.Errno) {
	if errno := c.isSocket(fd(a.A1)); errno != 0 {
		return fail(errno)
	}
	flags := number(a.A4)
	var r posix.Received
	_, errno := c.fill(fd(a.A1), a.A2, int(a.A3), fs.Current, func(b []byte) (n int, errno linux.Errno) {
		r, errno = c.Process.Recv(fd(a.A1), b, flags)
		return r.N, errno
	})
	socket.DropControl(r.Control)
	if errno != 0 {
		return fail(errno)
	}
	return result(received(r, flags), c.putAddress(a.A5, a.A6, r.From))
}

// received returns the result of a receive call: the number of bytes received or, with
// MSG_TRUNC, the length of the message.
func received(r posix.Received, flags int) int {
	if flags&linux.MSG_TRUNC != 0 {
		return r.Len
	}
	return r.N
}

// header reads a struct msghdr and its vector: see Caller.vector.
func (c Caller) header(addr uint64, few *fewPieces) (linux.Msghdr, vector, linux.Errno) {
	h, errno := parse(c, addr, linux.SizeofMsghdr, linux.ParseMsghdr)
	if errno != 0 {
		return h, nil, errno
	}
	for at, field := range [...]*uint64{&h.Name, &h.Iov, &h.Control} {
		if !c.moves() {
			break
		}
		offset := [...]uint64{linux.MsghdrName, linux.MsghdrIov, linux.MsghdrControl}[at]
		if *field, errno = c.Memory.Pointer(addr + offset); errno != 0 {
			return h, nil, errno
		}
	}
	switch {
	case h.Name != 0 && int32(h.Namelen) < 0:
		return h, nil, linux.EINVAL
	case h.Iovlen > linux.UIO_MAXIOV:
		return h, nil, linux.EMSGSIZE
	}
	v, errno := c.vector(h.Iov, h.Iovlen, few)
	return h, v, errno
}

func (c Caller) sendMessage(fd int, addr uint64, flags int) (uint64, linux.Errno) {
	if errno := c.isSocket(fd); errno != 0 {
		return fail(errno)
	}
	var few fewPieces
	h, v, errno := c.header(addr, &few)
	if errno != 0 {
		return fail(errno)
	}
	m := posix.Outgoing{Flags: flags}
	if h.Name != 0 && h.Namelen > 0 {
		if m.To, errno = c.address(h.Name, int(min(h.Namelen, linux.SizeofSockaddrStorage))); errno != 0 {
			return fail(errno)
		}
	}
	if m.Control, errno = c.control(h); errno != 0 {
		return fail(errno)
	}
	b, errno := c.single(v)
	switch {
	case errno != 0:
		return fail(errno)
	case b != nil:
		return result(c.Process.Send(fd, b, m))
	}
	// A message must be sent in one piece. A stream transfer may be partial.
	l := c.borrow(min(v.len(), most))
	defer l.giveBack()
	if _, errno := c.gather(v, l.b, 0); errno != 0 {
		return fail(errno)
	}
	return result(c.Process.Send(fd, l.b, m))
}

func (c Caller) receiveMessage(fd int, addr uint64, flags int) (uint64, linux.Errno) {
	if errno := c.isSocket(fd); errno != 0 {
		return fail(errno)
	}
	var few fewPieces
	h, v, errno := c.header(addr, &few)
	if errno != 0 {
		return fail(errno)
	}
	r, errno := c.receiveInto(fd, v, flags)
	if errno != 0 {
		socket.DropControl(r.Control)
		return fail(errno)
	}
	if errno = c.putHeader(addr, h, r); errno != 0 {
		return fail(errno)
	}
	return result(received(r, flags), 0)
}

func (c Caller) receiveInto(fd int, v vector, flags int) (posix.Received, linux.Errno) {
	b, errno := c.single(v)
	switch {
	case errno != 0:
		return posix.Received{}, errno
	case b != nil:
		return c.Process.Recv(fd, b, flags)
	}
	l := c.borrow(min(v.len(), most))
	defer l.giveBack()
	r, errno := c.Process.Recv(fd, l.b, flags)
	if errno == 0 {
		errno = c.scatter(v, l.b[:r.N])
	}
	return r, errno
}

// putHeader writes the output fields of a struct msghdr after a receive call.
func (c Caller) putHeader(addr uint64, h linux.Msghdr, r posix.Received) linux.Errno {
	if h.Name != 0 {
		n, errno := c.writeAddress(h.Name, int(h.Namelen), r.From)
		if errno == 0 {
			errno = c.writeUint32(addr+linux.MsghdrNamelen, uint32(n))
		}
		if errno != 0 {
			socket.DropControl(r.Control)
			return errno
		}
	}
	n, truncated, errno := c.putControl(h, r)
	if errno == 0 {
		errno = c.writeUint64(addr+linux.MsghdrControllen, uint64(n))
	}
	if errno == 0 {
		errno = c.writeUint32(addr+linux.MsghdrFlags, uint32(r.Flags|truncated))
	}
	return errno
}

// mostControl limits the control messages of a call, in bytes.
const mostControl = 64 << 10

// control parses control messages (cmsg(3)).
func (c Caller) control(h linux.Msghdr) ([]posix.Control, linux.Errno) {
	if h.Controllen > mostControl {
		return nil, linux.ENOBUFS
	}
	b, errno := c.copyIn(h.Control, int(h.Controllen))
	if errno != 0 {
		return nil, errno
	}
	var list []posix.Control
	for len(b) >= linux.SizeofCmsghdr {
		head := linux.ParseCmsghdr(b)
		if head.Len < linux.SizeofCmsghdr || head.Len > uint64(len(b)) {
			return nil, linux.EINVAL
		}
		list = append(list, posix.Control{Level: int(head.Level), Type: int(head.Type), Data: b[linux.SizeofCmsghdr:head.Len]})
		b = b[min(linux.AlignCmsg(int(head.Len)), len(b)):]
	}
	return list, 0
}

// putControl writes control messages. It returns their size in bytes, and MSG_CTRUNC if some did not fit. As on Linux, the
// last message is cut off, and descriptors for which there is no room are dropped.
func (c Caller) putControl(h linux.Msghdr, r posix.Received) (n, truncated int, errno linux.Errno) {
	room := 0
	if h.Control != 0 {
		room = int(min(h.Controllen, mostControl))
	}
	var b, installed []byte
	for _, m := range r.Control {
		left := max(room-len(b)-linux.SizeofCmsghdr, 0)
		isRights := m.Level == linux.SOL_SOCKET && m.Type == linux.SCM_RIGHTS
		all := true
		switch {
		case isRights:
			all = c.Process.InstallPassed(&m, left/sizeofDescriptor, r.Flags&linux.MSG_CMSG_CLOEXEC != 0)
			installed = append(installed, m.Data...)
		case m.Process != nil && left < sizeofDescriptor:
			truncated = linux.MSG_CTRUNC
			continue
		case m.Process != nil:
			fd, errno := c.Process.InstallProcess(m.Process, 0)
			if errno == 0 {
				installed = le.AppendUint32(installed, uint32(fd))
			} else {
				fd = -int(errno) // as on Linux
			}
			m.Data = le.AppendUint32(nil, uint32(fd))
		}
		data := m.Data[:min(left, len(m.Data))]
		if !all || len(data) < len(m.Data) {
			truncated = linux.MSG_CTRUNC
		}
		if len(b)+linux.SizeofCmsghdr > room || len(data) == 0 && isRights {
			continue
		}
		b = linux.Cmsghdr{Len: uint64(linux.SizeofCmsghdr + len(data)), Level: int32(m.Level), Type: int32(m.Type)}.Append(b)
		b = append(b, data...)
		b = append(b, make([]byte, min(linux.AlignCmsg(len(b)), room)-len(b))...)
	}
	if len(b) == 0 {
		return 0, truncated, 0
	}
	if errno = c.Memory.Write(h.Control, b); errno != 0 {
		for ; len(installed) > 0; installed = installed[sizeofDescriptor:] {
			c.Process.Uninstall(int(le.Uint32(installed)))
		}
	}
	return len(b), truncated, errno
}

// sizeofDescriptor is the size of a descriptor in a control message, in bytes.
const sizeofDescriptor = 4

// eachMessage calls f for each struct mmsghdr until one fails. It returns the error only if the first
// one fails.
func (c Caller) eachMessage(a Args, f func(addr uint64, i int) (uint64, linux.Errno)) (uint64, linux.Errno) {
	if errno := c.isSocket(fd(a.A1)); errno != 0 {
		return fail(errno)
	}
	count := min(unsigned(a.A3), linux.UIO_MAXIOV)
	for i := range count {
		addr := a.A2 + uint64(i)*linux.SizeofMmsghdr
		n, errno := f(addr, i)
		if errno == 0 {
			errno = c.writeUint32(addr+linux.MmsghdrLen, uint32(n))
		}
		if errno != 0 {
			if i > 0 {
				return result(i, 0)
			}
			return fail(errno)
		}
	}
	return result(count, 0)
}

func sendmmsg(c Caller, a Args) (uint64, linux.Errno) {
	return c.eachMessage(a, func(addr uint64, _ int) (uint64, linux.Errno) {
		return c.sendMessage(fd(a.A1), addr, number(a.A4))
	})
}

// recvmmsg implements recvmmsg(2). As on Linux, the timeout is checked only after each message: it does not end a wait.
func recvmmsg(c Caller, a Args) (uint64, linux.Errno) {
	timeout, errno := c.timeout(a.A5)
	if errno != 0 {
		return fail(errno)
	}
	start := time.Now()
	flags := number(a.A4) &^ linux.MSG_WAITFORONE
	n, errno := c.eachMessage(a, func(addr uint64, i int) (uint64, linux.Errno) {
		switch {
		case i > 0 && timeout != forever && timeLeft(timeout, start) == 0:
			return fail(linux.EAGAIN)
		case i > 0 && a.A4&linux.MSG_WAITFORONE != 0:
			flags |= linux.MSG_DONTWAIT
		}
		return c.receiveMessage(fd(a.A1), addr, flags)
	})
	if errno == 0 && n > 0 && timeout != forever {
		_, errno = c.put(a.A5, linux.SizeofTimespec, linux.NanoTimespec(timeLeft(timeout, start)).Put)
	}
	return result(int(n), errno)
}
