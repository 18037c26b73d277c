package posix

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
	"loam/posix/mapping"
	"loam/posix/packet"
)

// Shared mappings of a Go program: see posix/mapping. Linux programs use package mem instead.

// MayMap checks whether mmap(2) may map a file. Errors: EBADF, EINVAL, EACCES, ENODEV; EPERM for a
// sealed file.
func (p *Process) MayMap(fd, prot, flags int, offset int64) Errno {
	if s, ok := p.packetSocketAt(fd); ok {
		return s.MayMap(flags, offset)
	}
	f, errno := p.real(fd, linux.ENODEV)
	switch {
	case errno != 0:
		return errno
	case offset < 0 || offset%mapping.Page != 0:
		return linux.EINVAL
	case f.Attr().Mode.Type() != fs.Regular:
		return linux.ENODEV
	case !f.Flags().MayRead():
		return linux.EACCES
	}
	switch flags & linux.MAP_SHARED_VALIDATE {
	case linux.MAP_PRIVATE:
		return 0
	case linux.MAP_SHARED, linux.MAP_SHARED_VALIDATE:
		if prot&linux.PROT_WRITE != 0 && !f.Flags().MayWrite() {
			return linux.EACCES
		}
		if s, err := f.Seals(); err == nil && prot&linux.PROT_WRITE != 0 && s&(fs.SealWrite|fs.SealFutureWrite) != 0 {
			return linux.EPERM
		}
		return 0
	}
	return linux.EINVAL
}

// MapShared implements mmap(2) for a shared mapping that MayMap has allowed, and returns its address.
// Errors: EINVAL, ENOMEM, ENODEV for a file without shared mappings.
func (p *Process) MapShared(fd int, length uint64, offset int64, reserve fs.Reserve) (uint64, Errno) {
	if s, ok := p.packetSocketAt(fd); ok {
		r := s.Mapped()
		if r == nil {
			return 0, linux.EINVAL
		}
		return p.mappings.Add(r, length, offset, reserve)
	}
	f, errno := p.real(fd, linux.ENODEV)
	if errno != 0 {
		return 0, errno
	}
	handle, err := f.Place().Node.Open(f.Flags())
	if err != nil {
		return 0, file.ToErrno(err)
	}
	m, ok := handle.(fs.Mappable)
	if !ok {
		handle.Close()
		return 0, linux.ENODEV
	}
	return p.mappings.Add(m, length, offset, reserve)
}

// Shares reports whether a range of memory overlaps a shared mapping.
func (p *Process) Shares(addr, length uint64) bool { return p.mappings.Overlaps(addr, length) }

// UnmapShared implements munmap(2) for memory for which Shares is true. If several mappings have
// exactly this range, one of them is removed.
func (p *Process) UnmapShared(addr, length uint64) { p.mappings.Unmap(addr, length) }

// RemapShared implements mremap(2) for memory for which Shares is true. The range must be one whole
// mapping. It can move only if its file has no other mappings. Errors: EFAULT for a part of a mapping,
// ENOMEM, EINVAL.
func (p *Process) RemapShared(addr, old, size uint64, flags int, reserve fs.Reserve) (uint64, Errno) {
	return p.mappings.Remap(addr, old, size, flags, reserve)
}

// RingAt returns the ring of the packet socket open at fd, for a mapping by a Linux process, and the inode number of the
// socket. Errors: EINVAL for a request that cannot be granted, ENODEV if fd is not a packet socket.
func (p *Process) RingAt(fd, flags int, offset int64) (r *packet.Ring, inode uint64, errno Errno) {
	o := p.fds.Get(fd)
	if o == nil {
		return nil, 0, linux.ENODEV
	}
	s, ok := o.File.(*packet.Socket)
	if !ok {
		return nil, 0, linux.ENODEV
	}
	if errno := s.MayMap(flags, offset); errno != 0 {
		return nil, 0, errno
	}
	if r = s.Mapped(); r == nil { // another thread has removed the ring
		return nil, 0, linux.EINVAL
	}
	return r, o.Number(&p.serial), 0
}

// packetSocketAt returns the packet socket of fd, if it is one.
func (p *Process) packetSocketAt(fd int) (*packet.Socket, bool) {
	o := p.fds.Get(fd)
	if o == nil {
		return nil, false
	}
	s, ok := o.File.(*packet.Socket)
	return s, ok
}
