package procfs

import (
	"encoding/binary"
	"strings"
	"sync"

	"loam/abi/linux"
	"loam/fs"
)

// handle is an open file of a process. A read after the end of the process returns ESRCH.
type handle struct {
	node   node
	caller fs.Caller
	flags  fs.Flags
	memory Memory // memory of the process when the file was opened; unused if the file is not guarded
}

// process returns the process with the memory that it had when the file was opened, and a snapshot of the thread. Errors: ESRCH.
func (h handle) process() (Process, *Stat, error) {
	p, s, err := h.node.process()
	if err == nil && h.node.what.guarded {
		p = inMemory{h.memory, others{p}}
	}
	return p, s, err
}

// WriteAt implements fs.Handle.
func (h handle) WriteAt([]byte, int64) (int, error) { return 0, linux.EINVAL }

// Append implements fs.Handle.
func (h handle) Append([]byte) (int, int64, error) { return 0, 0, linux.EINVAL }

// Sync implements fs.Handle.
func (h handle) Sync() error { return linux.EINVAL }

// Close implements fs.Handle.
func (h handle) Close() error { return nil }

// textHandle is an open file with a text. A read at offset 0 generates the text, because programs rewind a file to read it
// again. If the text has parts, a read generates only the parts that it returns, and drops the text before its offset. A later
// read at a smaller offset generates the text from its start.
type textHandle struct {
	handle
	mu   sync.Mutex
	text []byte
	at   int64 // offset of text in the file
	made bool
	more bool   // the text has further parts
	next uint64 // where the next part begins
}

// ReadAt implements fs.Handle.
func (h *textHandle) ReadAt(b []byte, offset int64) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if offset < h.at || offset == 0 || !h.made {
		if err := h.start(); err != nil {
			return 0, err
		}
	}
	for h.more && offset+int64(len(b)) > h.at+int64(len(h.text)) {
		h.drop(offset)
		p, _, err := h.process()
		if err != nil {
			return 0, err
		}
		part, next := h.node.what.part(p, h.next, int(offset-h.at)+len(b)-len(h.text))
		if len(h.text) > 0 {
			part = append(h.text, part...)
		}
		h.text, h.next, h.more = part, next, next != 0
	}
	if offset >= h.at+int64(len(h.text)) {
		return 0, nil
	}
	return copy(b, h.text[offset-h.at:]), nil
}

// drop removes the text before an offset of the file.
func (h *textHandle) drop(offset int64) {
	n := min(int(offset-h.at), len(h.text))
	h.text, h.at = h.text[n:], h.at+int64(n)
}

// start generates the text, or starts a text with parts.
func (h *textHandle) start() error {
	h.text, h.at, h.next, h.more = nil, 0, 0, h.node.what.part != nil
	if !h.more {
		p, s, err := h.process()
		if err != nil {
			return err
		}
		text, err := h.node.what.text(h.node, p, s, h.caller)
		if err != nil {
			return err
		}
		h.text = []byte(text)
	}
	h.made = true
	return nil
}

// WriteAt implements fs.Handle.
func (h *textHandle) WriteAt(b []byte, _ int64) (int, error) {
	p, _, err := h.node.process()
	if err != nil {
		return 0, err
	}
	if err := p.Set(h.caller, h.node.tid, h.node.what.set, strings.TrimSuffix(string(b), "\n")); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Append implements fs.Handle.
func (h *textHandle) Append(b []byte) (int, int64, error) {
	n, err := h.WriteAt(b, 0)
	return n, 0, err
}

// mountsHandle is an open file that shows the mounts of a process. It reports their changes.
type mountsHandle struct {
	*textHandle
	*fs.MountAlert
}

// Close implements fs.Handle.
func (h *mountsHandle) Close() error { return h.MountAlert.Close() }

// mapsHandle is the open file maps.
type mapsHandle struct{ *textHandle }

// QueryRegion implements PROCMAP_QUERY: see Memory.
func (h mapsHandle) QueryRegion(q *linux.ProcmapQuery, wantID bool) (name string, id []byte, err error) {
	return h.memory.QueryRegion(q, wantID)
}

// memoryHandle is the open file mem: offsets are addresses in the memory of a process.
type memoryHandle struct{ handle }

// ReadAt implements fs.Handle. Errors: EIO if no memory is mapped at the offset.
func (h memoryHandle) ReadAt(b []byte, offset int64) (int, error) {
	return h.access(len(b), h.memory.ReadMemory(b, uint64(offset)))
}

// WriteAt implements fs.Handle.
func (h memoryHandle) WriteAt(b []byte, offset int64) (int, error) {
	return h.access(len(b), h.memory.WriteMemory(b, uint64(offset)))
}

// access returns the result of a read or write that has moved n bytes. As on Linux, it moves nothing and succeeds if the memory no longer
// exists.
func (h memoryHandle) access(want, n int) (int, error) {
	if n == 0 && want > 0 && h.memory.Exists() {
		return 0, linux.EIO
	}
	return n, nil
}

// pagemapHandle is the open file pagemap: a word for each page of the address space, in which a bit shows whether the page
// is present. Physical addresses are not shown.
type pagemapHandle struct{ handle }

// ReadAt implements fs.Handle. Errors: EINVAL unless size and offset are multiples of a word.
func (h pagemapHandle) ReadAt(b []byte, offset int64) (int, error) {
	// size of a word, the bit for a present page, and the maximum number of words in a read
	const word, present, most = 8, 1 << 63, 4096
	if len(b)%word != 0 || offset%word != 0 {
		return 0, linux.EINVAL
	}
	if !h.memory.Exists() {
		return 0, nil
	}
	n := 0
	for i := range min(len(b)/word, most) {
		addr := (uint64(offset)/word + uint64(i)) * pageSize
		if addr >= 1<<47 {
			break
		}
		v := uint64(0)
		if h.memory.Present(addr) {
			v = present
		}
		binary.LittleEndian.PutUint64(b[n:], v)
		n += word
	}
	return n, nil
}
