package posix

import (
	"sync"

	"loam/abi/linux"
	"loam/fs"
	"loam/posix/epoll"
	"loam/posix/event"
	"loam/posix/file"
	"loam/posix/pipe"
	"loam/posix/timer"
)

// Calls about offsets and sizes of files: lseek, pread, ftruncate, fsync.

// Lseek implements lseek(2). It returns the new offset, which is always 0 for an eventfd and similar files. Errors: EBADF,
// ESPIPE, EINVAL, ENXIO.
func (p *Process) Lseek(fd int, offset int64, whence int) (int64, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return -1, errno
	}
	f, ok := o.File.(*treeFile)
	switch {
	case !ok && ignoresSeek(o):
		return 0, 0
	case !ok:
		return -1, linux.ESPIPE
	}
	at, err := f.Seek(offset, whence)
	if err != nil {
		return -1, file.ToErrno(err)
	}
	return at, 0
}

// ignoresSeek reports whether lseek(2) of a file succeeds without an effect.
func ignoresSeek(o *file.Description) bool {
	switch o.File.(type) {
	case *event.Counter, *event.Inotify, *event.Signals, *timer.File, *epoll.Set:
		return true
	}
	return false
}

// Pread implements pread64(2). It returns 0 at the end of the file. Errors: EBADF, ESPIPE, EINVAL, EISDIR.
func (p *Process) Pread(fd int, b []byte, offset int64) (int, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return -1, errno
	}
	return o.ReadAt(b, offset)
}

// Pwrite implements pwrite64(2). With O_APPEND it writes at the end of the file, as on Linux. Errors:
// EBADF, ESPIPE, EINVAL, and errors of the file system.
func (p *Process) Pwrite(fd int, b []byte, offset int64) (int, Errno) {
	o, errno := p.get(fd)
	if errno != 0 {
		return -1, errno
	}
	n, _, errno := p.PwriteOpened(o, b, offset)
	return n, errno
}

// PwriteOpened implements pwrite64(2) for an open file. It also returns the offset after the bytes that it has written.
func (p *Process) PwriteOpened(o *Opened, b []byte, offset int64) (n int, end int64, errno Errno) {
	if b, errno = p.bounded(o, b, func(*treeFile) int64 { return max(offset, 0) }); errno != 0 {
		return -1, offset, errno
	}
	if errno = p.prepareWrite(o.File, len(b)); errno != 0 {
		return -1, offset, errno
	}
	return o.WriteEnd(b, offset)
}

// Ftruncate implements ftruncate(2). Errors: EBADF, EINVAL if the file is not a regular file open for
// writing, and errors of the file system.
func (p *Process) Ftruncate(fd int, size int64) Errno {
	if size < 0 {
		return linux.EINVAL
	}
	f, errno := p.real(fd, linux.EINVAL)
	if errno != 0 {
		return errno
	}
	if errno := p.mayExtend(size); errno != 0 {
		return errno
	}
	p.clearSetIDs(f)
	return file.ToErrno(f.Truncate(size))
}

// Fallocate implements fallocate(2). On a file system without fs.Allocator it reserves no space and
// only extends the file. There it returns EOPNOTSUPP for modes that punch holes or move data.
func (p *Process) Fallocate(fd int, mode uint32, offset, length int64) Errno {
	o, errno := p.get(fd)
	switch {
	case errno != 0:
		return errno
	case offset < 0 || length <= 0:
		return linux.EINVAL
	case !o.MayWrite():
		return linux.EBADF
	}
	f, errno := p.real(fd, linux.ENODEV)
	if _, isPipe := o.File.(*pipe.End); isPipe {
		return linux.ESPIPE
	}
	switch {
	case errno != 0:
		return errno
	case f.Attr().Mode.Type() != fs.Regular:
		return linux.ENODEV
	case offset+length < 0:
		return linux.EFBIG
	case p.mayExtend(offset+length) != 0:
		return linux.EFBIG
	}
	p.clearSetIDs(f)
	if err := f.RemoveCapabilities(1); err != nil {
		return file.ToErrno(err)
	}
	if a, ok := f.Handle().(fs.Allocator); ok {
		return file.ToErrno(a.Allocate(fs.AllocateMode(mode), offset, length))
	}
	switch {
	case mode&^linux.FALLOC_FL_KEEP_SIZE != 0:
		return linux.EOPNOTSUPP
	case mode == linux.FALLOC_FL_KEEP_SIZE || offset+length <= f.Attr().Size:
		return 0
	}
	return file.ToErrno(f.Truncate(offset + length))
}

// Fsync implements fsync(2). Errors: EBADF, EINVAL for a file outside the tree, EIO.
func (p *Process) Fsync(fd int) Errno { return p.fsync(fd, (*fs.File).Sync) }

// Fdatasync implements fdatasync(2). The errors are those of Fsync.
func (p *Process) Fdatasync(fd int) Errno { return p.fsync(fd, (*fs.File).SyncData) }

func (p *Process) fsync(fd int, sync func(*fs.File) error) Errno {
	f, errno := p.real(fd, linux.EINVAL)
	if errno != 0 {
		return errno
	}
	return file.ToErrno(sync(&f.File))
}

// Syncfs implements syncfs(2) for the file system of fd. Errors: EBADF.
func (p *Process) Syncfs(fd int) Errno {
	f, errno := p.real(fd, 0)
	if errno != 0 || f == nil { // a file outside any file system, such as a pipe, has nothing to write
		return errno
	}
	return file.ToErrno(f.Place().Sync())
}

// SyncFileRange implements sync_file_range(2). It checks its arguments and writes nothing. Errors:
// EINVAL for unknown flags or an invalid range, EBADF, ESPIPE.
func (p *Process) SyncFileRange(fd int, offset, length int64, flags int) Errno {
	const all = 7 // SYNC_FILE_RANGE_WAIT_BEFORE, SYNC_FILE_RANGE_WRITE and SYNC_FILE_RANGE_WAIT_AFTER together
	f, errno := p.real(fd, linux.ESPIPE)
	switch {
	case errno == linux.EBADF:
		return errno
	case flags&^all != 0 || offset < 0 || length < 0 || offset+length < 0:
		return linux.EINVAL
	case errno != 0:
		return errno
	}
	if kind := f.Attr().Mode.Type(); kind == fs.CharDevice || kind == fs.Fifo || kind == fs.Socket {
		return linux.ESPIPE
	}
	return 0
}

// Fadvise implements posix_fadvise(2), without any effect. Errors: EBADF, ESPIPE for a pipe, EINVAL for unknown advice or a
// negative length.
func (p *Process) Fadvise(fd int, length int64, advice int) Errno {
	const last = 5 // POSIX_FADV_NOREUSE, the largest value
	o, errno := p.get(fd)
	if errno != 0 {
		return errno
	}
	if _, isPipe := o.File.(*pipe.End); isPipe {
		return linux.ESPIPE
	}
	if length < 0 || advice < 0 || advice > last {
		return linux.EINVAL
	}
	return 0
}

// Readahead implements readahead(2), without any effect. Errors: EBADF, EINVAL for a file that is not regular.
func (p *Process) Readahead(fd int) Errno {
	if o, errno := p.get(fd); errno != 0 || !o.MayRead() {
		return linux.EBADF
	}
	f, errno := p.real(fd, linux.EINVAL)
	switch {
	case errno != 0:
		return errno
	case f.Attr().Mode.Type() != fs.Regular:
		return linux.EINVAL
	}
	return 0
}

// Sync implements sync(2).
func (p *Process) Sync() { p.sight().Tree.Sync() }

// copyPiece is the size of the buffer for copies between files, in bytes.
const copyPiece = 64 << 10

// copyBuffers holds buffers for Sendfile.
var copyBuffers = sync.Pool{New: func() any { return new([copyPiece]byte) }}

// Sendfile implements sendfile(2) from a file of the file tree to any file. If offset is nil, it reads at the current offset
// of the file. To a pipe, it moves bytes as splice(2) does. Errors: EINVAL for another kind of input; programs then read and
// write instead.
func (p *Process) Sendfile(out, in int, offset *int64, n int) (int, Errno) {
	f, errno := p.real(in, linux.EINVAL)
	if errno != 0 {
		return -1, errno
	}
	o, errno := p.get(out)
	if errno != 0 || !o.MayWrite() {
		return -1, linux.EBADF
	}
	_, isPipe := o.File.(*pipe.End)
	if n < 0 || !isPipe && o.Flags.Load()&linux.O_APPEND != 0 {
		return -1, linux.EINVAL
	}
	at, errno := f.position(offset)
	if errno != 0 {
		return -1, errno
	}
	if isPipe {
		return p.Splice(in, offset, out, nil, n, 0)
	}
	done, errno := p.sendFrom(f, out, at, n)
	if errno != 0 {
		return -1, pipe.NotDirectory(errno)
	}
	return done, f.advance(offset, at+int64(done))
}

// sendFrom writes up to n bytes of a file from an offset to the descriptor out. It ends early at the end of the file, when a
// write is partial, and when a signal arrives. It returns an error only if nothing was written.
func (p *Process) sendFrom(f *treeFile, out int, at int64, n int) (done int, errno Errno) {
	b := copyBuffers.Get().(*[copyPiece]byte)
	defer copyBuffers.Put(b)
	for done < n && (done == 0 || p.interrupt == nil || !p.interrupt.Raised()) {
		got, err := f.ReadAt(b[:min(n-done, copyPiece)], at+int64(done))
		if err != nil || got == 0 {
			errno = file.ToErrno(err)
			break
		}
		sent := 0
		if sent, errno = p.Write(out, b[:got]); errno != 0 {
			break
		}
		if done += sent; sent < got {
			break
		}
	}
	if done > 0 {
		errno = 0
	}
	return done, errno
}

// position returns the offset at which a call starts: *offset, or the current offset of the file if offset is nil. Errors:
// EINVAL for a file without an offset.
func (f *treeFile) position(offset *int64) (int64, Errno) {
	if offset != nil {
		return *offset, 0
	}
	at, err := f.Seek(0, fs.SeekCur)
	if err != nil {
		return 0, linux.EINVAL
	}
	return at, 0
}

// advance stores a new value where position has read the offset: in *offset or in the file.
func (f *treeFile) advance(offset *int64, to int64) Errno {
	if offset != nil {
		*offset = to
		return 0
	}
	_, err := f.Seek(to, fs.SeekSet)
	return file.ToErrno(err)
}

// CopyFileRange implements copy_file_range(2) between regular files.
func (p *Process) CopyFileRange(in int, inOffset *int64, out int, outOffset *int64, n int) (int, Errno) {
	from, errno := p.real(in, linux.EINVAL)
	if errno != 0 {
		return -1, errno
	}
	to, errno := p.real(out, linux.EINVAL)
	if errno != 0 {
		return -1, errno
	}
	for _, f := range [...]*treeFile{from, to} {
		switch f.Attr().Mode.Type() {
		case fs.Regular:
		case fs.Dir:
			return -1, linux.EISDIR
		default:
			return -1, linux.EINVAL
		}
	}
	if !from.Flags().MayRead() || !to.Flags().MayWrite() || to.Flags()&fs.Append != 0 {
		return -1, linux.EBADF
	}
	if errno := p.prepareWrite(to, n); errno != 0 {
		return -1, errno
	}
	return copyRange(from, inOffset, to, outOffset, n)
}

// copyRange copies up to n bytes through a buffer, and advances both offsets. Errors: EINVAL if the
// ranges overlap in one file.
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
		return -1, linux.EINVAL // source and destination ranges overlap
	}
	b := make([]byte, min(max(n, 0), copyPiece))
	done := 0
	for done < n {
		got, err := from.ReadAt(b[:min(len(b), n-done)], read+int64(done))
		if err == nil && got > 0 {
			got, err = to.WriteAt(b[:got], write+int64(done))
		}
		if err != nil && done == 0 {
			return -1, file.ToErrno(err)
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
