package exec

import (
	"slices"

	"loam/abi/linux"
	"loam/mem"
)

// Request describes a program to execute, with its arguments and its environment.
type Request struct {
	Path   string   // the path that was passed to execve (AT_EXECFN)
	Argv   []string // the arguments, as Resolve returned them
	Envp   []string
	File   File
	Open   Opener // opens the file of the dynamic loader
	Random func() uint64
	// Randomise selects random addresses. It is set if kernel.randomize_va_space is 2 and ADDR_NO_RANDOMIZE is not set.
	Randomise  bool
	StackLimit uint64 // RLIMIT_STACK in bytes
	Identity   Identity
	Machine    Machine
	VDSO       VDSO
}

// Identity holds the credentials of the new program. Secure is the value of AT_SECURE. It is set for set-user-ID files
// and if capabilities are gained; the dynamic loader then ignores environment variables such as LD_PRELOAD.
type Identity struct {
	UID, EUID, GID, EGID uint32
	Secure               bool
}

// Machine describes the processor and the kernel for the auxiliary vector (getauxval(3)).
type Machine struct {
	HWCap, HWCap2  uint64
	MinSignalStack uint64 // AT_MINSIGSTKSZ: minimum size of a signal stack in bytes
	RseqSize       uint64 // AT_RSEQ_FEATURE_SIZE: size of the supported part of struct rseq in bytes
	RseqAlign      uint64
}

// VDSO is the image that a kernel maps into every process: pages of data, followed by the pages of the ELF file. If
// CodePages is 0, there is no vDSO.
type VDSO struct {
	Data, Code           mem.Object
	DataPages, CodePages uint64
}

// Mapping is one call of mmap at a fixed address, and a range of it that must be cleared.
type Mapping struct {
	Request        mem.Request
	ZeroAt, ZeroTo uint64 // range to clear: the part of the last page after the file's data; if equal, nothing is cleared
}

// Plan is the address space of a new program.
type Plan struct {
	Layout       mem.Layout
	Mappings     []Mapping
	Entry        uint64
	StackPointer uint64
	Stack        []byte // initial content of the stack, from StackPointer upwards
	Break        uint64
	Base         uint64 // base address of the dynamic loader (AT_BASE); 0: none
	Bias         uint64 // load bias of the program
	Places       Places
}

// Places are the addresses of the parts of a new program that /proc/PID shows (proc(5)), and the auxiliary vector.
type Places struct {
	CodeStart, CodeEnd, DataStart, DataEnd uint64
	ArgStart, ArgEnd, EnvStart, EnvEnd     uint64 // the strings of arguments and environment
	StackStart, BreakStart                 uint64
	Auxv                                   []byte
}

// Addresses and random ranges, as on Linux.
const (
	// dynBase is the address of a position-independent program that has a dynamic loader, without randomisation: two
	// thirds of the address space (ELF_ET_DYN_BASE).
	dynBase = mem.End / 3 * 2
	// stackShift is the largest random shift of the stack, in pages; it is used as a mask.
	stackShift = 0x3fffff
	// mmapShift is the largest random shift of a program, in pages (mmap_rnd_bits is 28); it is used as a mask.
	mmapShift = 1<<28 - 1
	// breakShift is the largest random distance from the program to the heap, in bytes.
	breakShift = 32 << 20
	// stackSlack is the number of bytes of the stack's region below the initial stack pointer.
	stackSlack = 128 << 10
)

// Make computes the plan. Errors: the errors of Parse and of the opener; E2BIG if the arguments are too long; ELIBBAD
// if the dynamic loader is not an ELF file; ENOMEM if the program does not fit into the address space.
func Make(q Request) (*Plan, error) {
	main, err := Parse(q.File.Reader)
	if err != nil {
		return nil, err
	}
	if err := checkStrings(q); err != nil {
		return nil, err
	}
	p := &Plan{Layout: mem.NewLayout(q.StackLimit, nil)}
	if q.Randomise {
		p.Layout = mem.NewLayout(q.StackLimit, q.Random)
	}
	area := p.Layout.Top // the mapping area is filled from the top down
	p.Bias = q.bias(main, &area)
	if err := p.segments(main, p.Bias, q.File.Object); err != nil {
		return nil, err
	}
	p.Entry = main.Entry + p.Bias
	if err := q.loader(p, main.Interp, &area); err != nil {
		return nil, err
	}
	vdso := q.vdso(p, &area)
	p.breakAfter(main, q)
	p.Places.BreakStart = p.Break
	p.extent(main)
	return p, p.stack(q, main, vdso)
}

// below returns a random number of bytes, a multiple of the page size and at most mask pages; 0 without Randomise.
func (q *Request) below(mask uint64) uint64 {
	if !q.Randomise {
		return 0
	}
	return q.Random() & mask << mem.PageShift
}

// bias returns the load bias of an image. A program with a dynamic loader has a range of addresses of its own. A static
// program, and the dynamic loader itself, are placed in the mapping area.
func (q *Request) bias(i *Image, area *uint64) uint64 {
	if i.Fixed {
		return 0
	}
	low, _ := i.span()
	if i.Interp == "" {
		return take(area, i) - low
	}
	base := (dynBase + q.below(mmapShift)) &^ (mem.PageSize - 1)
	return base&^(i.Align-1) - low
}

// take reserves addresses for an image at the upper end of the free mapping area.
func take(area *uint64, i *Image) uint64 {
	low, high := i.span()
	size := high - low
	if size > *area {
		return 0 // no room: the function `segments` rejects the address 0
	}
	*area = (*area - size) &^ (i.Align - 1)
	return *area
}

// loader plans the dynamic loader, if there is one. The process then starts at the loader's entry point.
func (q *Request) loader(p *Plan, path string, area *uint64) error {
	if path == "" {
		return nil
	}
	file, err := q.Open(path)
	if err != nil {
		return err
	}
	i, err := Parse(file.Reader)
	if err == linux.ENOEXEC {
		return linux.ELIBBAD
	} else if err != nil {
		return err
	}
	low, _ := i.span()
	if !i.Fixed {
		p.Base = take(area, i) - low
	}
	p.Entry = i.Entry + p.Base
	return p.segments(i, p.Base, file.Object)
}

// vdso plans the vDSO and returns the address of its ELF header.
func (q *Request) vdso(p *Plan, area *uint64) uint64 {
	v := q.VDSO
	if v.CodePages == 0 {
		return 0
	}
	*area -= (v.DataPages + v.CodePages) * mem.PageSize
	code := *area + v.DataPages*mem.PageSize
	const flags = mem.MapPrivate | mem.MapFixedNoReplace
	if v.DataPages > 0 {
		p.add(mem.Request{Addr: *area, Length: v.DataPages * mem.PageSize, Prot: mem.Read, Flags: flags, Object: v.Data, Special: true})
	}
	p.add(mem.Request{Addr: code, Length: v.CodePages * mem.PageSize, Prot: mem.Read | mem.Exec, Flags: flags, Object: v.Code, Special: true})
	return code
}

func (p *Plan) add(q mem.Request) { p.Mappings = append(p.Mappings, Mapping{Request: q}) }

// segments plans the mappings of an image. If a segment is larger in memory than in the file, the rest is zeros: the
// remainder of the last page, then anonymous pages.
func (p *Plan) segments(i *Image, bias uint64, object mem.Object) error {
	for _, s := range i.Segments {
		start := s.Addr + bias
		if start < p.Layout.Floor || start > mem.End || s.Memory > mem.End-start {
			return linux.ENOMEM
		}
		page := start &^ (mem.PageSize - 1)
		data, end := start+s.FileSize, pageUp(start+s.Memory)
		anonymous := page
		if s.FileSize > 0 {
			anonymous = pageUp(data)
			q := mem.Request{
				Addr: page, Length: anonymous - page, Prot: s.Prot, Flags: mem.MapPrivate | mem.MapFixed,
				Object: object, Offset: s.Offset &^ (mem.PageSize - 1),
			}
			m := Mapping{Request: q}
			if s.Memory > s.FileSize && s.Prot&mem.Write != 0 {
				m.ZeroAt, m.ZeroTo = data, anonymous
			}
			p.Mappings = append(p.Mappings, m)
		}
		if anonymous < end {
			p.add(mem.Request{Addr: anonymous, Length: end - anonymous, Prot: s.Prot, Flags: mem.MapPrivate | mem.MapFixed})
		}
	}
	return nil
}

// breakAfter places the heap after the program. A static position-independent program is in the mapping area; its heap
// is at the address at which programs with a dynamic loader are placed.
func (p *Plan) breakAfter(i *Image, q Request) {
	_, high := i.span()
	p.Break = high + p.Bias
	if !i.Fixed && i.Interp == "" {
		p.Break = pageUp(dynBase)
	}
	if q.Randomise {
		p.Break += q.Random() % (breakShift / mem.PageSize) * mem.PageSize
	}
}

// WritesCode reports whether a mapping of a file is writable and executable. The stack is no file.
func (p *Plan) WritesCode() bool {
	return slices.ContainsFunc(p.Mappings, func(v Mapping) bool {
		return v.Request.Object != nil && v.Request.Prot&(mem.Write|mem.Exec) == mem.Write|mem.Exec
	})
}

// Apply makes the plan's mappings in an empty map. Every File must have an Object. On an error, the caller must destroy
// the map.
func (p *Plan) Apply(m *mem.Map) error {
	for _, v := range p.Mappings {
		if _, err := m.Mmap(v.Request); err != nil {
			return err
		}
		if err := write(m, make([]byte, v.ZeroTo-v.ZeroAt), v.ZeroAt); err != nil {
			return err
		}
	}
	m.SetBreak(p.Break)
	m.SetStack(p.StackPointer)
	return write(m, p.Stack, p.StackPointer)
}

func write(m *mem.Map, b []byte, addr uint64) error {
	switch _, result := m.WriteAt(b, addr); result {
	case mem.Mapped:
		return nil
	case mem.NoMemory:
		return linux.ENOMEM
	case mem.BusError:
		return linux.EIO
	}
	return linux.EFAULT
}

// extent records the addresses of the program's code and data for /proc/PID. The data is the writable segment that is
// last in the file.
func (p *Plan) extent(i *Image) {
	for _, s := range i.Segments {
		start, end := s.Addr+p.Bias, s.Addr+s.FileSize+p.Bias
		if s.Prot&mem.Exec != 0 {
			p.Places.CodeStart, p.Places.CodeEnd = start, end
		} else if s.Prot&mem.Write != 0 {
			p.Places.DataStart, p.Places.DataEnd = start, end
		}
	}
}
