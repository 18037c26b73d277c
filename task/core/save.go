package core

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/mem"
	"loam/posix"
)

// name is the name of the file in the working folder (/proc/sys/kernel/core_pattern).
const name = "core"

// Least is the smallest limit of the size (RLIMIT_CORE) with which a core dump is written, in bytes.
const Least = mem.PageSize

// Save writes the dump to the file core in the working folder of a process, whose rights apply. It replaces an earlier file. At
// most limit bytes are written. It reports whether a file was written.
func (d *Dump) Save(files *posix.Process, limit uint64) bool {
	files.UnlinkAt(linux.AT_FDCWD, name, 0)
	fd, errno := files.OpenAt(linux.AT_FDCWD, name, linux.O_CREAT|linux.O_EXCL|linux.O_RDWR|linux.O_NOFOLLOW|linux.O_CLOEXEC, 0o600)
	if errno != 0 {
		return false
	}
	defer files.Close(fd)
	if st, errno := files.Fstat(fd); errno != 0 || st.Mode.Type() != fs.Regular || st.Mode&0o677 != 0o600 {
		return false
	}
	w := writer{files: files, fd: fd, left: limit}
	d.write(&w)
	files.Ftruncate(fd, w.at)
	return true
}

// writer writes a sparse file from its beginning. After an error, or at the limit, it writes nothing more.
type writer struct {
	files *posix.Process
	fd    int
	at    int64
	left  uint64 // number of bytes that may still be written, without the holes
	full  bool
}

// put writes all bytes of b, or none.
func (w *writer) put(b []byte) {
	if w.full || uint64(len(b)) > w.left {
		w.full = true
		return
	}
	w.left -= uint64(len(b))
	for len(b) > 0 {
		n, errno := w.files.Pwrite(w.fd, b, w.at)
		if errno != 0 || n == 0 {
			w.full = true
			return
		}
		w.at, b = w.at+int64(n), b[n:]
	}
}

// skip leaves a hole of n bytes.
func (w *writer) skip(n int64) {
	if !w.full {
		w.at += n
	}
}
