package posix

import (
	"syscall"

	"loam/fs"
)

// Calls about offsets and sizes of files: lseek, pread, ftruncate, fsync.

// Lseek is lseek(2).
func (p *Process) Lseek(fd int, offset int64, whence int) (int64, Errno) {
	f, errno := p.real(fd, syscall.ESPIPE)
	if errno != 0 {
		return -1, errno
	}
	at, err := f.Seek(offset, whence)
	if err != nil {
		return -1, toErrno(err)
	}
	return at, 0
}

// Pread is pread64(2).
func (p *Process) Pread(fd int, b []byte, offset int64) (int, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return -1, errno
	}
	return o.ReadAt(b, offset)
}

// ReadAt is pread64(2) from an open file.
func (o *open) ReadAt(b []byte, offset int64) (int, Errno) {
	f, ok := o.file.(*treeFile)
	if !ok {
		return -1, syscall.ESPIPE
	}
	n, err := f.ReadAt(b, offset)
	if err != nil {
		return -1, toErrno(err)
	}
	return n, 0
}

// Pwrite is pwrite64(2).
func (p *Process) Pwrite(fd int, b []byte, offset int64) (int, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return -1, errno
	}
	return o.WriteAt(b, offset)
}

// WriteAt is pwrite64(2) to an open file.
func (o *open) WriteAt(b []byte, offset int64) (int, Errno) {
	f, ok := o.file.(*treeFile)
	if !ok {
		return -1, syscall.ESPIPE
	}
	n, err := f.WriteAt(b, offset)
	if err != nil && n == 0 {
		return -1, toErrno(err)
	}
	return n, 0
}

// Ftruncate is ftruncate(2).
func (p *Process) Ftruncate(fd int, size int64) Errno {
	f, errno := p.real(fd, syscall.EINVAL)
	if errno != 0 {
		return errno
	}
	return toErrno(f.Truncate(size))
}

// fallocKeepSize is FALLOC_FL_KEEP_SIZE.
const fallocKeepSize = 1

// Fallocate is fallocate(2). Space is not set aside: the file only grows.
// Errors: EOPNOTSUPP for modes that make holes or move what is there.
func (p *Process) Fallocate(fd int, mode uint32, offset, length int64) Errno {
	f, errno := p.real(fd, syscall.ESPIPE)
	switch {
	case errno != 0:
		return errno
	case offset < 0 || length <= 0:
		return syscall.EINVAL
	case mode&^fallocKeepSize != 0:
		return syscall.EOPNOTSUPP
	case !f.Flags().MayWrite():
		return syscall.EBADF
	case f.Attr().Mode.Type() != fs.Regular:
		return syscall.ENODEV
	case offset+length < 0:
		return syscall.EFBIG
	case mode == fallocKeepSize || offset+length <= f.Attr().Size:
		return 0
	}
	return toErrno(f.Truncate(offset + length))
}

// Fsync is fsync(2) and fdatasync(2).
func (p *Process) Fsync(fd int) Errno {
	f, errno := p.real(fd, syscall.EINVAL)
	if errno != 0 {
		return errno
	}
	return toErrno(f.Sync())
}

// Syncfs is syncfs(2).
func (p *Process) Syncfs(fd int) Errno {
	f, errno := p.real(fd, 0)
	if errno != 0 || f == nil { // what is on no file system is never late
		return errno
	}
	return toErrno(f.Place().Sync())
}

// SyncFileRange is sync_file_range(2): nothing waits to be written to what keeps nothing.
// Errors: EINVAL for flags that there are not or a range that is none, EBADF, ESPIPE.
func (p *Process) SyncFileRange(fd int, offset, length int64, flags int) Errno {
	const all = 7 // SYNC_FILE_RANGE_WAIT_BEFORE, _WRITE, _WAIT_AFTER
	_, errno := p.real(fd, syscall.ESPIPE)
	switch {
	case errno == syscall.EBADF:
		return errno
	case flags&^all != 0 || offset < 0 || length < 0 || offset+length < 0:
		return syscall.EINVAL
	}
	return errno
}

// Fadvise is posix_fadvise(2), which helps nothing here. Errors: EBADF, ESPIPE.
func (p *Process) Fadvise(fd int) Errno {
	_, errno := p.real(fd, syscall.ESPIPE)
	return errno
}

// Sync is sync(2).
func (p *Process) Sync() { p.view.Load().Tree.Sync() }

// copyPiece is how much is copied between files at once.
const copyPiece = 64 << 10

// MapSharedValidate is MAP_SHARED_VALIDATE of mmap(2).
const MapSharedValidate = 3

// MayMap says whether mmap(2) may map a file. Errors: EBADF, EINVAL, EACCES, ENODEV; EPERM
// for one that is sealed.
func (p *Process) MayMap(fd, prot, flags int, offset int64) Errno {
	if s, ok := p.packetSocketAt(fd); ok {
		return s.mayMap(flags, offset)
	}
	f, errno := p.real(fd, syscall.ENODEV)
	switch {
	case errno != 0:
		return errno
	case offset < 0 || offset%mapPage != 0:
		return syscall.EINVAL
	case f.Attr().Mode.Type() != fs.Regular:
		return syscall.ENODEV
	case !f.Flags().MayRead():
		return syscall.EACCES
	}
	switch flags & MapSharedValidate {
	case syscall.MAP_PRIVATE:
		return 0
	case syscall.MAP_SHARED, MapSharedValidate:
		if prot&syscall.PROT_WRITE != 0 && !f.Flags().MayWrite() {
			return syscall.EACCES
		}
		if s, err := f.Seals(); err == nil && prot&syscall.PROT_WRITE != 0 && s&(fs.SealWrite|fs.SealFutureWrite) != 0 {
			return syscall.EPERM
		}
		return 0
	}
	return syscall.EINVAL
}

// mapPage is the unit of mmap's offsets, in bytes.
const mapPage = 4096

// Sendfile is sendfile(2): from a file of the tree to anything. Without offset
// it reads at the file's own. Errors: EINVAL when in is of another kind, upon
// which programs copy.
func (p *Process) Sendfile(out, in int, offset *int64, n int) (int, Errno) {
	f, errno := p.real(in, syscall.EINVAL)
	if errno != 0 {
		return -1, errno
	}
	if _, errno := p.get(out); errno != 0 {
		return -1, errno
	}
	at, errno := f.position(offset)
	if errno != 0 {
		return -1, errno
	}
	b := make([]byte, min(max(n, 0), copyPiece))
	got, err := f.ReadAt(b, at)
	if err != nil || got == 0 {
		return min(got, 0), toErrno(err)
	}
	sent, errno := p.Write(out, b[:got])
	if errno != 0 {
		return -1, errno
	}
	return sent, f.advance(offset, at+int64(sent))
}

// position is where a call reads or writes that may be given an offset.
// Errors: EINVAL for a file that has none.
func (f *treeFile) position(offset *int64) (int64, Errno) {
	if offset != nil {
		return *offset, 0
	}
	at, err := f.Seek(0, fs.SeekCur)
	if err != nil {
		return 0, syscall.EINVAL
	}
	return at, 0
}

// advance moves the offset that position told.
func (f *treeFile) advance(offset *int64, to int64) Errno {
	if offset != nil {
		*offset = to
		return 0
	}
	_, err := f.Seek(to, fs.SeekSet)
	return toErrno(err)
}

// CopyFileRange is copy_file_range(2), between regular files.
func (p *Process) CopyFileRange(in int, inOffset *int64, out int, outOffset *int64, n int) (int, Errno) {
	from, errno := p.real(in, syscall.EINVAL)
	if errno != 0 {
		return -1, errno
	}
	to, errno := p.real(out, syscall.EINVAL)
	switch {
	case errno != 0:
		return -1, errno
	case !from.Flags().MayRead() || !to.Flags().MayWrite() || to.Flags()&fs.Append != 0:
		return -1, syscall.EBADF
	}
	for _, f := range [...]*treeFile{from, to} {
		switch f.Attr().Mode.Type() {
		case fs.Regular:
		case fs.Dir:
			return -1, syscall.EISDIR
		default:
			return -1, syscall.EINVAL
		}
	}
	return copyRange(from, inOffset, to, outOffset, n)
}

func copyRange(from *treeFile, inOffset *int64, to *treeFile, outOffset *int64, n int) (int, Errno) {
	read, errno := from.position(inOffset)
	if errno != 0 {
		return -1, errno
	}
	write, errno := to.position(outOffset)
	if errno != 0 {
		return -1, errno
	}
	if from.Place() == to.Place() && read < write+int64(n) && write < read+int64(n) {
		return -1, syscall.EINVAL // the two overlap
	}
	b := make([]byte, min(max(n, 0), copyPiece))
	done := 0
	for done < n {
		got, err := from.ReadAt(b[:min(len(b), n-done)], read+int64(done))
		if err == nil && got > 0 {
			got, err = to.WriteAt(b[:got], write+int64(done))
		}
		if err != nil && done == 0 {
			return -1, toErrno(err)
		}
		if err != nil || got == 0 {
			break
		}
		done += got
	}
	if errno := from.advance(inOffset, read+int64(done)); errno != 0 {
		return -1, errno
	}
	return done, to.advance(outOffset, write+int64(done))
}
