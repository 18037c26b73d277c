package posix

import (
	"loam/abi/linux"
	"loam/fs"
	"loam/posix/file"
)

// Limits of a process on descriptors and file sizes (setrlimit(2)).

// limits holds limits as complements, so that the zero value means none.
type limits struct{ files, size, queued uint64 }

// SetLimits sets RLIMIT_NOFILE, RLIMIT_FSIZE and RLIMIT_MSGQUEUE of the process. A new process has none of them, and a child inherits
// them.
func (p *Process) SetLimits(files, size, queued uint64) {
	p.limits.Store(&limits{^files, ^size, ^queued})
}

// mostQueued returns the bytes that message queues of the user may have. Without a limit it is Linux's default.
func (p *Process) mostQueued() uint64 {
	const usual = 819200
	l := p.limits.Load()
	if l == nil {
		return usual
	}
	return ^l.queued
}

// mostFiles returns the number of descriptors that the process may have: a new one is below it.
func (p *Process) mostFiles() int {
	l := p.limits.Load()
	if l == nil {
		return file.MaxDescriptors
	}
	return int(min(^l.files, file.MaxDescriptors))
}

// bounded returns the part of a write to a file at an offset that RLIMIT_FSIZE allows. Errors: EFBIG if there is none.
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

// mayExtend checks a new size of a file against RLIMIT_FSIZE. Errors: EFBIG.
func (p *Process) mayExtend(size int64) Errno {
	if l := p.limits.Load(); l != nil && size > 0 && uint64(size) > ^l.size {
		return linux.EFBIG
	}
	return 0
}

// LimitsFileSize reports whether the process has a limit on file sizes. EFBIG of a write is then accompanied by SIGXFSZ.
func (p *Process) LimitsFileSize() bool {
	l := p.limits.Load()
	return l != nil && l.size != 0
}

// MostFiles returns the number of descriptors that the process may have.
func (p *Process) MostFiles() int { return p.mostFiles() }
