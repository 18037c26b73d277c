package posix

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// Limits of a process on descriptors and file sizes (setrlimit(2)).

// limits holds each limit as its bitwise complement, so that the zero value means no limits.
type limits struct{ files, size, queued uint64 }

// SetLimits sets RLIMIT_NOFILE, RLIMIT_FSIZE and RLIMIT_MSGQUEUE of the process. A new process has no such limits, and a
// child inherits them.
func (p *Process) SetLimits(files, size, queued uint64) {
	p.limits.Store(&limits{^files, ^size, ^queued})
}

// mostQueued returns the maximum size of all message queues of the user in bytes (RLIMIT_MSGQUEUE). If no limit is set, it
// returns Linux's default.
func (p *Process) mostQueued() uint64 {
	const usual = 819200
	l := p.limits.Load()
	if l == nil {
		return usual
	}
	return ^l.queued
}

// MostFiles returns RLIMIT_NOFILE of the process: a new descriptor must be smaller.
func (p *Process) MostFiles() int {
	l := p.limits.Load()
	if l == nil {
		return int(p.OpenMax.Get())
	}
	return int(min(^l.files, uint64(p.OpenMax.Get())))
}

// bounded returns the part of b that RLIMIT_FSIZE allows to be written at an offset of a file. Errors: EFBIG if no byte may
// be written.
func (p *Process) bounded(o *file.Description, b []byte, offset func(*treeFile) int64) ([]byte, Errno) {
	l := p.limits.Load()
	if l == nil || l.size == 0 || len(b) == 0 {
		return b, 0
	}
	f, ok := o.File.(*treeFile)
	if !ok || f.Attr().Mode.Type() != fs.Regular {
		return b, 0
	}
	at := offset(f)
	if f.Flags()&fs.Append != 0 {
		at = f.Attr().Size
	}
	if uint64(at) >= ^l.size {
		return nil, linux.EFBIG
	}
	return b[:min(uint64(len(b)), ^l.size-uint64(at))], 0
}

// current returns the offset of a file.
func current(f *treeFile) int64 {
	at, _ := f.Seek(0, fs.SeekCur)
	return at
}

// mayExtend returns EFBIG if a new size of a file exceeds RLIMIT_FSIZE.
func (p *Process) mayExtend(size int64) Errno {
	if l := p.limits.Load(); l != nil && size > 0 && uint64(size) > ^l.size {
		return linux.EFBIG
	}
	return 0
}

// LimitsFileSize reports whether the process has a limit on file sizes. If a write then fails with EFBIG, the caller also
// sends SIGXFSZ.
func (p *Process) LimitsFileSize() bool {
	l := p.limits.Load()
	return l != nil && l.size != 0
}
