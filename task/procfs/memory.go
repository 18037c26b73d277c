package procfs

import (
	"slices"

	"loam/abi/linux"
	"loam/exec"
	"loam/mem"
)

// MemoryView implements Memory for the memory of a process.
type MemoryView struct {
	// Borrow returns the memory, and a function that ends its use. It returns nil after the memory has been freed.
	Borrow func() (m *mem.Map, leave func())
	// Places returns the addresses of the parts of the program, and its auxiliary vector.
	Places func() exec.Places
}

// Exists implements Memory.
func (w MemoryView) Exists() bool {
	m, leave := w.Borrow()
	if m != nil {
		leave()
	}
	return m != nil
}

// inMemory is a process with a pinned view of its memory. The methods of Memory hide the methods of the process.
type inMemory struct {
	Memory
	others
}

type others struct{ Process }

// Sizes implements Memory.
func (w MemoryView) Sizes(r *Stat) {
	a, leave := w.Borrow()
	if a == nil {
		return
	}
	defer leave()
	u := a.Usage()
	r.Memory = true
	r.Size, r.Data, r.Stack, r.Locked = u.Total, u.Data, u.Stack, u.Locked
	r.Resident, r.Anonymous = a.Resident()
	places := w.Places()
	r.CodeStart, r.CodeEnd, r.DataStart, r.DataEnd = places.CodeStart, places.CodeEnd, places.DataStart, places.DataEnd
	r.StackStart, r.BreakStart = places.StackStart, places.BreakStart
	r.ArgStart, r.ArgEnd, r.EnvStart, r.EnvEnd = places.ArgStart, places.ArgEnd, places.EnvStart, places.EnvEnd
	r.Code = (places.CodeEnd+mem.PageSize-1)&^(mem.PageSize-1) - places.CodeStart&^(mem.PageSize-1)
}

// mostText is the maximum number of bytes that a read of arguments or environment copies.
const mostText = 2 << 20

// between returns the memory of the process between two addresses.
func (w MemoryView) between(from, to uint64) []byte {
	if to <= from || to-from > mostText {
		return nil
	}
	b := make([]byte, to-from)
	return b[:w.ReadMemory(b, from)]
}

// Arguments implements Memory. If a program has overwritten the end of its arguments, they are a single string, which may
// continue in the environment (setproctitle(3)).
func (w MemoryView) Arguments() []byte {
	e := w.Places()
	b := w.between(e.ArgStart, e.ArgEnd)
	if len(b) == 0 || b[len(b)-1] == 0 {
		return b
	}
	b = append(b, w.between(e.EnvStart, e.EnvEnd)...)
	if i := slices.Index(b, 0); i >= 0 {
		b = b[:i+1]
	}
	return b
}

// Environment implements Memory.
func (w MemoryView) Environment() []byte {
	e := w.Places()
	return w.between(e.EnvStart, e.EnvEnd)
}

// Auxv implements Memory. As on Linux, it needs no memory that exists.
func (w MemoryView) Auxv() []byte { return w.Places().Auxv }

// text returns a text about the memory of the process.
func (w MemoryView) text(f func(*mem.Map, []byte) []byte) []byte {
	a, leave := w.Borrow()
	if a == nil {
		return nil
	}
	defer leave()
	return f(a, nil)
}

// Maps implements Memory.
func (w MemoryView) Maps() []byte {
	return w.text(func(m *mem.Map, b []byte) []byte { return append(m.AppendMaps(b), mem.Vsyscall...) })
}

// Smaps implements Memory.
func (w MemoryView) Smaps(from uint64, size int) (text []byte, next uint64) {
	a, leave := w.Borrow()
	if a == nil {
		return nil, 0
	}
	defer leave()
	if text, next = a.Smaps(from, size); next == 0 {
		text = mem.AppendVsyscall(text)
	}
	return text, next
}

// Rollup implements Memory.
func (w MemoryView) Rollup() []byte {
	return w.text(func(m *mem.Map, _ []byte) []byte { return m.Rollup() })
}

// QueryRegion implements Memory.
func (w MemoryView) QueryRegion(q *linux.ProcmapQuery, wantID bool) (name string, id []byte, err error) {
	m, leave := w.Borrow()
	if m == nil {
		return "", nil, linux.ESRCH
	}
	defer leave()
	name, content, err := m.Query(q)
	if content != nil {
		defer content.Close()
		if wantID {
			id = exec.BuildID(content)
		}
	}
	return name, id, err
}

// ReadMemory implements Memory.
func (w MemoryView) ReadMemory(b []byte, addr uint64) (n int) {
	if a, leave := w.Borrow(); a != nil {
		defer leave()
		n, _ = a.ReadForced(b, addr)
	}
	return n
}

// WriteMemory implements Memory.
func (w MemoryView) WriteMemory(b []byte, addr uint64) (n int) {
	if a, leave := w.Borrow(); a != nil {
		defer leave()
		n, _ = a.WriteForced(b, addr)
	}
	return n
}

// Present implements Memory.
func (w MemoryView) Present(addr uint64) bool {
	a, leave := w.Borrow()
	if a == nil {
		return false
	}
	defer leave()
	var present [1]byte
	return a.Mincore(addr, mem.PageSize, present[:]) == nil && present[0] != 0
}
