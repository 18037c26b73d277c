package core

import (
	"loam/fs"
	"loam/mem"
	"loam/posix"
	"loam/task/signal"
)

// Least is the smallest limit of the size (RLIMIT_CORE) with which a core dump is written, in bytes.
const Least = mem.PageSize

// Save writes the dump to the file that the settings name, in the working folder of a process, whose rights apply. It replaces an earlier
// file if mayReplace allows it. It returns the bit of the process's status that reports a core dump; 0 if there is none. The file has no
// descriptor: a process that shares the table of descriptors cannot exchange it.
func (d *Dump) Save(process *posix.Process, s *Settings) (flag int32) {
	if d.aborted() {
		return 0
	}
	v, name := process.View(), d.name(s, process.Uname().Nodename)
	if earlier, err := v.Lookup(v.Dir, name, false); err == nil && mayReplace(earlier.Node.Attr()) {
		v.Unlink(v.Dir, name)
	}
	// Open fails if the earlier file was not removed.
	f, err := v.Open(v.Dir, name, fs.Create|fs.Exclusive|fs.ReadWrite|fs.NoFollow, 0o600)
	if err != nil {
		return 0
	}
	defer f.Close()
	if a := f.Attr(); a.Mode.Type() != fs.Regular || a.Mode&0o677 != 0o600 {
		return 0
	}
	w := writer{file: f, aborted: d.aborted, left: d.Limit, end: d.FileLimit}
	d.write(&w)
	w.flush()
	f.Truncate(w.at)
	if d.aborted() {
		return 0
	}
	return signal.CoreFlag
}

// mayReplace reports whether a core dump replaces a file: a regular file with one name (core(5)). A device such as /dev/null stays, also
// if a process of root dumps.
func mayReplace(a fs.Attr) bool { return a.Mode.Type() == fs.Regular && a.Links == 1 }

// writer writes a sparse file from its beginning. After an error, at a limit, or when the dump is aborted, it takes nothing more.
type writer struct {
	file    *fs.File
	aborted func() bool
	buffer  []byte // bytes that are not written yet
	at      int64  // offset after the buffer
	left    uint64 // number of bytes that may still be written, without the holes
	end     uint64 // largest size of the file
	full    bool
}

// most is the size of the buffer above which it is written.
const most = 64 << 10

// put takes all bytes of b, or none.
func (w *writer) put(b []byte) {
	if w.full || w.aborted() || uint64(len(b)) > w.left || uint64(w.at)+uint64(len(b)) > w.end {
		w.full = true
		return
	}
	w.left -= uint64(len(b))
	w.buffer, w.at = append(w.buffer, b...), w.at+int64(len(b))
	if len(w.buffer) >= most {
		w.flush()
	}
}

// skip leaves a hole of n bytes.
func (w *writer) skip(n uint64) {
	if n == 0 {
		return
	}
	w.flush()
	w.full = w.full || w.aborted() || uint64(w.at)+n > w.end
	if !w.full {
		w.at += int64(n)
	}
}

// flush writes the buffer. After an error, the file ends with the last byte that was written.
func (w *writer) flush() {
	b := w.buffer
	for len(b) > 0 {
		n, err := w.file.WriteAt(b, w.at-int64(len(b)))
		b = b[n:]
		if err != nil || n == 0 {
			w.at -= int64(len(b))
			w.full = true
			break
		}
	}
	w.buffer = w.buffer[:0]
}
