package call

import (
	"cmp"
	"encoding/binary"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix"
	"loam/posix/file"
	"loam/posix/pipe"
)

// System calls that accept a descriptor of any kind.

func read(c Caller, a Args) (uint64, linux.Errno) {
	if n, errno, ok := c.large(a, fs.Current, false); ok {
		return result(n, errno)
	}
	o := c.Process.Opened(fd(a.A1))
	if o == nil {
		return fail(linux.EBADF)
	}
	if c.Process.Direct() {
		if n, errno, ok := c.inPlace(o, a.A2, int(a.A3), fs.Current, false); ok {
			return result(n, errno)
		}
	}
	if n := int(a.A3); 0 < n && n <= Small {
		if scratch := c.Memory.Scratch(); scratch != nil {
			return c.readSmall(o, fd(a.A1), a.A2, scratch[:n])
		}
	}
	return c.fill(fd(a.A1), a.A2, int(a.A3), fs.Current, func(b []byte) (int, linux.Errno) { return c.Process.ReadOpened(o, b) })
}

// readSmall implements read(2) into b, the buffer of a thread in ring 3, and copies it to the memory at addr.
func (c Caller) readSmall(o *posix.Opened, fd int, addr uint64, b []byte) (uint64, linux.Errno) {
	_, errno := c.Memory.Bytes(addr, len(b)) // checks the address
	if errno == 0 {
		errno = c.Process.CheckMemory(fd, addr, fs.Current, false)
	}
	if errno != 0 {
		return 0, c.orClosed(fd, errno, (*file.Description).MayRead)
	}
	n, errno := c.Process.ReadOpened(o, b)
	if errno == 0 {
		errno = c.Memory.Write(addr, b[:n])
	}
	return result(n, errno)
}

func write(c Caller, a Args) (uint64, linux.Errno) {
	if n, errno, ok := c.large(a, fs.Current, true); ok {
		return result(n, errno)
	}
	o := c.Process.Opened(fd(a.A1))
	switch {
	case o == nil:
		return fail(linux.EBADF)
	case o.Discards():
		return c.discard(a.A2, int(a.A3))
	}
	if c.Process.Direct() {
		if n, errno, ok := c.inPlace(o, a.A2, int(a.A3), fs.Current, true); ok {
			return result(n, errno)
		}
	}
	return c.drain(fd(a.A1), a.A2, int(a.A3), func(b []byte) (int, linux.Errno) { return c.Process.WriteOpened(o, b) })
}

// discard implements write(2) for a file that ignores the bytes. As on Linux, an address that is not mapped is no error.
func (c Caller) discard(addr uint64, n int) (uint64, linux.Errno) {
	const most = 0x7ffff000 // MAX_RW_COUNT of Linux
	_, errno := c.buffer(addr, n)
	return result(min(n, most), errno)
}

func pread(c Caller, a Args) (uint64, linux.Errno) {
	if errno := c.checkRange(a, c.Process.Pread); errno != 0 {
		return fail(errno)
	}
	if n, errno, ok := c.large(a, int64(a.A4), false); ok {
		return result(n, errno)
	}
	if n, errno, ok := c.inPlace(c.Process.Opened(fd(a.A1)), a.A2, int(a.A3), int64(a.A4), false); ok {
		return result(n, errno)
	}
	return c.fill(fd(a.A1), a.A2, int(a.A3), int64(a.A4), func(b []byte) (int, linux.Errno) { return c.Process.Pread(fd(a.A1), b, int64(a.A4)) })
}

// checkRange checks the offset of pread64(2) and pwrite64(2), and the end of the range: EINVAL. The descriptor, by a transfer
// of no bytes, and the address are checked before the end.
func (c Caller) checkRange(a Args, transfer func(fd int, b []byte, offset int64) (int, linux.Errno)) linux.Errno {
	offset, n := int64(a.A4), int64(a.A3)
	if offset < 0 {
		return linux.EINVAL
	}
	if n <= 0 || offset+n >= 0 {
		return 0
	}
	if _, errno := transfer(fd(a.A1), nil, offset); errno == linux.EBADF || errno == linux.ESPIPE {
		return errno
	}
	_, errno := c.buffer(a.A2, int(n))
	return cmp.Or(errno, linux.EINVAL)
}

func pwrite(c Caller, a Args) (uint64, linux.Errno) {
	if errno := c.checkRange(a, c.Process.Pwrite); errno != 0 {
		return fail(errno)
	}
	if n, errno, ok := c.large(a, int64(a.A4), true); ok {
		return result(n, errno)
	}
	if n, errno, ok := c.inPlace(c.Process.Opened(fd(a.A1)), a.A2, int(a.A3), int64(a.A4), true); ok {
		return result(n, errno)
	}
	return c.drain(fd(a.A1), a.A2, int(a.A3), func(b []byte) (int, linux.Errno) { return c.Process.Pwrite(fd(a.A1), b, int64(a.A4)) })
}

func readv(c Caller, a Args) (uint64, linux.Errno) {
	if n, errno, ok := c.vectorInPlace(a, fs.Current, false); ok {
		return result(n, errno)
	}
	return c.receiveVector(a, fs.Current, func(b []byte) (int, linux.Errno) {
		if len(b) == 0 {
			return 0, c.Process.MayRead(fd(a.A1))
		}
		return c.Process.Read(fd(a.A1), b)
	})
}

func writev(c Caller, a Args) (uint64, linux.Errno) {
	if n, errno, ok := c.vectorInPlace(a, fs.Current, true); ok {
		return result(n, errno)
	}
	return c.sendVector(a, func(b []byte) (int, linux.Errno) {
		if len(b) == 0 {
			return 0, c.Process.MayWrite(fd(a.A1))
		}
		return c.Process.Write(fd(a.A1), b)
	})
}

// ownOffset is the offset of preadv2(2) and pwritev2(2) that selects the current offset of the file.
const ownOffset = -1

// isStream reports whether fd is an open file without offsets. As on Linux, preadv(2) and pwritev(2) check this before the
// vector.
func (c Caller) isStream(fd int) bool {
	o := c.Process.Opened(fd)
	return o != nil && !o.PathOnly() && !o.HasOffsets()
}

func preadv(c Caller, a Args) (uint64, linux.Errno) {
	if int64(a.A4) < 0 {
		return fail(linux.EINVAL)
	}
	if c.isStream(fd(a.A1)) {
		return fail(linux.ESPIPE)
	}
	if n, errno, ok := c.vectorInPlace(a, int64(a.A4), false); ok {
		return result(n, errno)
	}
	return c.receiveVector(a, int64(a.A4), func(b []byte) (int, linux.Errno) {
		n, errno := c.Process.Pread(fd(a.A1), b, int64(a.A4))
		if len(b) == 0 && errno == linux.EISDIR {
			return 0, 0 // unlike pread64(2), preadv(2) of no bytes does not read a folder
		}
		return n, errno
	})
}

func pwritev(c Caller, a Args) (uint64, linux.Errno) {
	offset := int64(a.A4)
	if offset < 0 {
		return fail(linux.EINVAL)
	}
	if c.isStream(fd(a.A1)) {
		return fail(linux.ESPIPE)
	}
	if n, errno, ok := c.vectorInPlace(a, offset, true); ok {
		return result(n, errno)
	}
	return c.sendVector(a, func(b []byte) (int, linux.Errno) {
		n, errno := c.Process.Pwrite(fd(a.A1), b, offset)
		offset += int64(max(n, 0))
		return n, errno
	})
}

// Flags of preadv2(2) and pwritev2(2). RWF_HIPRI and RWF_NOWAIT are accepted and have no effect.
const (
	hiPri      = 1
	dataSync   = 2 // RWF_DSYNC
	wholeSync  = 4 // RWF_SYNC
	noWait     = 8
	readFlags  = hiPri | noWait
	writeFlags = readFlags | dataSync | wholeSync
)

func preadv2(c Caller, a Args) (uint64, linux.Errno) {
	if a.A6&^readFlags != 0 {
		return fail(linux.EOPNOTSUPP)
	}
	if int64(a.A4) == ownOffset {
		return readv(c, a)
	}
	return preadv(c, a)
}

func pwritev2(c Caller, a Args) (uint64, linux.Errno) {
	if a.A6&^writeFlags != 0 {
		return fail(linux.EOPNOTSUPP)
	}
	write := pwritev
	if int64(a.A4) == ownOffset {
		write = writev
	}
	n, errno := write(c, a)
	if errno != 0 || n == 0 {
		return n, errno
	}
	switch {
	case a.A6&wholeSync != 0:
		errno = c.Process.Fsync(fd(a.A1))
	case a.A6&dataSync != 0:
		errno = c.Process.Fdatasync(fd(a.A1))
	}
	if errno == linux.EINVAL {
		errno = 0 // a file without storage, such as a pipe
	}
	return n, errno
}

func fcntl(c Caller, a Args) (uint64, linux.Errno) {
	switch cmd := number(a.A2); cmd {
	case linux.F_GETLK, linux.F_SETLK, linux.F_SETLKW, linux.F_OFD_GETLK, linux.F_OFD_SETLK, linux.F_OFD_SETLKW:
		return c.lockRange(fd(a.A1), cmd, a.A3)
	case linux.F_SETOWN_EX, linux.F_GETOWN_EX:
		return c.fileOwner(fd(a.A1), cmd, a.A3)
	case linux.F_CREATED_QUERY, linux.F_DUPFD_QUERY:
		return c.query(fd(a.A1), cmd, fd(a.A3))
	default:
		return result(c.Process.Fcntl(fd(a.A1), cmd, int(a.A3)))
	}
}

// query implements F_CREATED_QUERY, whether the open of fd created the file, and F_DUPFD_QUERY, whether fd and other share an
// open file description. Errors: EBADF.
func (c Caller) query(fd, cmd, other int) (uint64, linux.Errno) {
	o := c.Process.Opened(fd)
	if o == nil {
		return fail(linux.EBADF)
	}
	var yes bool
	if cmd == linux.F_DUPFD_QUERY {
		p := c.Process.Opened(other)
		if p == nil {
			return fail(linux.EBADF)
		}
		yes = o == p
	} else if f, ok := o.File.(interface{ Created() bool }); ok {
		yes = f.Created()
	}
	if yes {
		return 1, 0
	}
	return 0, 0
}

// fileOwner implements F_SETOWN_EX and F_GETOWN_EX, whose argument is the address of a struct f_owner_ex.
func (c Caller) fileOwner(fd, cmd int, addr uint64) (uint64, linux.Errno) {
	const size, idAt = 8, 4
	le := binary.LittleEndian
	if errno := c.opened(fd); errno != 0 {
		return fail(errno)
	}
	if cmd == linux.F_GETOWN_EX {
		kind, id, errno := c.Process.GetOwnerEx(fd)
		if errno != 0 {
			return fail(errno)
		}
		return c.put(addr, size, func(b []byte) {
			le.PutUint32(b, uint32(kind))
			le.PutUint32(b[idAt:], uint32(id))
		})
	}
	owner, errno := parse(c, addr, size, func(b []byte) [2]int32 { return [...]int32{int32(le.Uint32(b)), int32(le.Uint32(b[idAt:]))} })
	if errno != 0 {
		return fail(errno)
	}
	return fail(c.Process.SetOwnerEx(fd, owner[0], owner[1]))
}

func (c Caller) lockRange(fd, cmd int, addr uint64) (uint64, linux.Errno) {
	if errno := c.opened(fd); errno != 0 {
		return fail(errno)
	}
	l, errno := parse(c, addr, linux.SizeofFlock, linux.ParseFlock)
	if errno != 0 {
		return fail(errno)
	}
	errno = c.Process.Lock(fd, cmd, &l)
	if errno == 0 && (cmd == linux.F_GETLK || cmd == linux.F_OFD_GETLK) {
		return c.put(addr, linux.SizeofFlock, l.Put)
	}
	return fail(errno)
}

// opened returns EBADF unless fd is open, and not only with O_PATH. A call checks the descriptor before it reads the caller's
// memory, as on Linux.
func (c Caller) opened(fd int) linux.Errno {
	if o := c.Process.Opened(fd); o == nil || o.PathOnly() {
		return linux.EBADF
	}
	return 0
}

func ioctl(c Caller, a Args) (uint64, linux.Errno) {
	descriptor, request := fd(a.A1), unsigned(a.A2)
	if errno := c.opened(descriptor); errno != 0 {
		return fail(errno)
	}
	switch size, out := posix.TerminalArgument(request); {
	case size > 0:
		return c.terminal(descriptor, request, a.A3, size, out)
	case posix.TakesValue(request):
		return result(c.Process.TerminalValue(descriptor, request, number(a.A3)))
	case request == linux.EXT4_IOC_RESIZE_FS:
		blocks, errno := parse(c, a.A3, 8, le.Uint64)
		if errno == 0 {
			errno = c.Process.Grow(descriptor, blocks)
		}
		return fail(errno)
	case request >= linux.NS_GET_USERNS && request <= linux.NS_GET_OWNER_UID:
		return c.namespaceRequest(descriptor, request, a.A3)
	case request == linux.PROCMAP_QUERY:
		return fail(c.queryRegion(descriptor, a.A3))
	case request == linux.FICLONE:
		return fail(c.clone(fd(a.A3), descriptor))
	case request == linux.FICLONERANGE:
		source, errno := parse(c, a.A3, 32, le.Uint64) // the first field of struct file_clone_range
		return fail(cmp.Or(errno, c.clone(fd(source), descriptor)))
	case file.DiskResult(request) > 0:
		return c.diskRequest(descriptor, request, a.A3)
	case posix.IsInterfaceRequest(request):
		if c.isSocket(descriptor) != 0 {
			return fail(linux.ENOTTY)
		}
		return c.withArgument(a.A3, linux.SizeofIfreq, func(arg []byte) linux.Errno {
			return c.Process.InterfaceRequest(descriptor, request, arg)
		})
	case request == linux.SIOCGIFCONF:
		return fail(c.interfaceList(descriptor, a.A3))
	case returnsInt(request):
		n, errno := c.Process.Ioctl(descriptor, request, 0)
		if errno == 0 {
			errno = c.writeUint32(a.A3, uint32(n))
		}
		return fail(errno)
	case !takesInt(request): // a request whose argument is not a pointer to an int
		_, errno := c.Process.Ioctl(descriptor, request, 0)
		return fail(errno)
	}
	n, errno := c.readUint32(a.A3)
	if errno == 0 {
		_, errno = c.Process.Ioctl(descriptor, request, int(int32(n)))
	}
	return fail(errno)
}

// returnsInt reports whether a request stores an int at the address of its argument and does not read it.
func returnsInt(request int) bool {
	switch request {
	case linux.FIONREAD, linux.SIOCOUTQ, linux.SIOCATMARK, linux.FIOGETOWN, linux.SIOCGPGRP, linux.RNDGETENTCNT:
		return true
	}
	return false
}

// takesInt reports whether a request reads an int at the address of its argument.
func takesInt(request int) bool {
	switch request {
	case linux.FIONBIO, linux.FIOASYNC, linux.FIOSETOWN, linux.SIOCSPGRP:
		return true
	}
	return false
}

// clone returns the error of a request that makes two files share content. No file system of Loam can do this. A copy of no bytes
// finds the errors of the two files.
func (c Caller) clone(from, to int) linux.Errno {
	var start int64
	_, errno := c.Process.CopyFileRange(from, &start, to, &start, 0)
	return cmp.Or(errno, linux.EOPNOTSUPP)
}

// diskRequest makes a request about a block device, and writes its result to addr.
func (c Caller) diskRequest(fd, request int, addr uint64) (uint64, linux.Errno) {
	n, errno := c.Process.DiskRequest(fd, request)
	if errno != 0 {
		return fail(errno)
	}
	return c.put(addr, file.DiskResult(request), func(b []byte) {
		if len(b) == 4 {
			le.PutUint32(b, uint32(n))
		} else {
			le.PutUint64(b, n)
		}
	})
}

// interfaceList implements SIOCGIFCONF. addr is the address of a struct ifconf: the size of a buffer as an int, and its
// address, which may be 0. The call fills the buffer with as many entries as fit, and stores their size.
func (c Caller) interfaceList(fd int, addr uint64) linux.Errno {
	list, errno := c.Process.InterfaceList(fd)
	if errno != 0 {
		return errno
	}
	arg, errno := c.copyIn(addr, linux.SizeofIfconf)
	if errno != 0 {
		return errno
	}
	if buffer := le.Uint64(arg[8:]); buffer != 0 {
		room := max(int(int32(le.Uint32(arg))), 0)
		list = list[:min(room/linux.SizeofIfreq*linux.SizeofIfreq, len(list))]
		if errno := c.Memory.Write(buffer, list); errno != 0 {
			return errno
		}
	}
	return c.Memory.Write(addr, le.AppendUint32(nil, uint32(len(list))))
}

// terminal executes an ioctl of a terminal whose argument is in the caller's memory. The argument is written back only if
// the request changes it.
func (c Caller) terminal(fd, request int, addr uint64, size int, out bool) (uint64, linux.Errno) {
	if out {
		arg := make([]byte, size)
		errno := c.Process.Terminal(fd, request, arg)
		if errno == 0 {
			errno = c.Memory.Write(addr, arg)
		}
		return fail(errno)
	}
	if !c.Process.HasTerminal(fd) {
		return fail(linux.ENOTTY)
	}
	arg, errno := c.copyIn(addr, size)
	if errno == 0 {
		errno = c.Process.Terminal(fd, request, arg)
	}
	return fail(errno)
}

// withArgument calls f with a copy of the argument at addr, and writes the copy back.
func (c Caller) withArgument(addr uint64, size int, f func(arg []byte) linux.Errno) (uint64, linux.Errno) {
	l := c.borrow(size)
	defer l.giveBack()
	errno := c.Memory.Read(l.b, addr)
	if errno == 0 {
		errno = f(l.b)
	}
	if errno == 0 {
		errno = c.Memory.Write(addr, l.b)
	}
	return fail(errno)
}

func dup3(c Caller, a Args) (uint64, linux.Errno) {
	return result(c.Process.Dup3(fd(a.A1), fd(a.A2), number(a.A3), false))
}

func sendfile(c Caller, a Args) (uint64, linux.Errno) {
	return c.moved(a.A3, 0, func(from, _ *int64) (int, linux.Errno) {
		return c.Process.Sendfile(fd(a.A1), fd(a.A2), from, int(a.A4))
	})
}

func copyFileRange(c Caller, a Args) (uint64, linux.Errno) {
	if a.A6 != 0 { // copy_file_range(2) has no flags
		return fail(linux.EINVAL)
	}
	return c.moved(a.A2, a.A4, func(from, to *int64) (int, linux.Errno) {
		return c.Process.CopyFileRange(fd(a.A1), from, fd(a.A3), to, int(a.A5))
	})
}

// longest is the largest number of bytes that one call moves, as on Linux.
const longest = 1<<31 - pageSize

// length returns a number of bytes, no larger than longest.
func length(a uint64) int { return int(min(a, longest)) }

func splice(c Caller, a Args) (uint64, linux.Errno) {
	if a.A5 == 0 { // a length of 0: Linux checks no other argument
		return fail(0)
	}
	return c.moved(a.A2, a.A4, func(from, to *int64) (int, linux.Errno) {
		return c.Process.Splice(fd(a.A1), from, fd(a.A3), to, length(a.A5), unsigned(a.A6))
	})
}

// vmsplice implements vmsplice(2). It copies the caller's bytes; Linux can instead let the pipe refer to the caller's pages.
func vmsplice(c Caller, a Args) (uint64, linux.Errno) {
	flags := unsigned(a.A4)
	into, errno := c.Process.PipeWrites(fd(a.A1), flags)
	switch {
	case errno != 0:
		return fail(errno)
	case into:
		return c.sendVector(a, func(b []byte) (int, linux.Errno) {
			n, errno := c.Process.WriteNow(fd(a.A1), b, flags)
			flags |= pipe.Nonblock // for the pieces after the first one
			return n, errno
		})
	}
	return c.receiveVector(a, fs.Current, func(b []byte) (int, linux.Errno) { return c.Process.ReadNow(fd(a.A1), b, flags) })
}

// moved reads the offsets stored at two addresses (in and out), calls f with them, and
// stores the changed offsets there. For the address 0, f gets nil.
func (c Caller) moved(in, out uint64, f func(from, to *int64) (int, linux.Errno)) (uint64, linux.Errno) {
	var args [2]*int64
	for i, addr := range [...]uint64{in, out} {
		if addr == 0 {
			continue
		}
		b, errno := c.copyIn(addr, 8)
		if errno != 0 {
			return fail(errno)
		}
		offset := int64(le.Uint64(b))
		args[i] = &offset
	}
	n, errno := f(args[0], args[1])
	for i, addr := range [...]uint64{in, out} {
		if addr != 0 && errno == 0 {
			errno = c.writeUint64(addr, uint64(*args[i]))
		}
	}
	return result(n, errno)
}

// pair writes two descriptors to an array of int. If the write fails, it closes them.
func (c Caller) pair(addr uint64, fds [2]int, errno linux.Errno) (uint64, linux.Errno) {
	if errno != 0 {
		return fail(errno)
	}
	if errno = c.writeUint64(addr, uint64(uint32(fds[0]))|uint64(uint32(fds[1]))<<32); errno != 0 {
		c.Process.Close(fds[0])
		c.Process.Close(fds[1])
	}
	return fail(errno)
}

func (c Caller) pipe(addr uint64, flags int) (uint64, linux.Errno) {
	fds, errno := c.Process.Pipe2(flags)
	return c.pair(addr, fds, errno)
}

func getdents64(c Caller, a Args) (uint64, linux.Errno) {
	return c.fill(fd(a.A1), a.A2, unsigned(a.A3), fs.Current, func(b []byte) (int, linux.Errno) { return c.Process.Getdents(fd(a.A1), b) })
}

func lseek(c Caller, a Args) (uint64, linux.Errno) {
	if uint32(a.A3) > linux.SEEK_HOLE {
		if errno := c.opened(fd(a.A1)); errno != 0 {
			return fail(errno)
		}
		return fail(linux.EINVAL)
	}
	at, errno := c.Process.Lseek(fd(a.A1), int64(a.A2), number(a.A3))
	return uint64(at), errno
}
