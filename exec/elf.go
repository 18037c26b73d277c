package exec

import (
	"encoding/binary"
	"io"
	"math/bits"

	"loam/abi/linux"
	"loam/mem"
)

// Numbers of the ELF format (System V ABI, chapters 4 and 5; AMD64 supplement).
const (
	headerSize  = 64
	programSize = 56

	typeExec = 2
	typeDyn  = 3

	machineAMD64 = 62

	ptLoad     = 1
	ptInterp   = 3
	ptPhdr     = 6
	ptGNUStack = 0x6474e551

	flagExec  = 1
	flagWrite = 2
	flagRead  = 4

	// maxHeaders is the maximum size of all program headers in bytes, as on Linux.
	maxHeaders = 65536
	pathMax    = 4096
)

// Segment is a PT_LOAD program header.
type Segment struct {
	Addr             uint64 // virtual address, without the load bias
	Offset           uint64
	FileSize, Memory uint64
	Prot             mem.Prot
}

// Image holds the contents of the headers of an ELF file.
type Image struct {
	Fixed      bool // ET_EXEC: addresses are absolute
	Entry      uint64
	Segments   []Segment
	Interp     string // path of the dynamic loader; empty: the program is static
	StackExec  bool
	Align      uint64 // the largest p_align that is a power of two, and at least the page size
	Headers    uint64 // address of the program headers, without the load bias
	HeaderNum  int
	headersOff uint64
}

// Parse reads the headers of an ELF file. Errors: ENOEXEC for a file that is not a program for x86-64, EINVAL for
// segments that cannot be mapped, and errors of the reader.
func Parse(r io.ReaderAt) (*Image, error) {
	var h [headerSize]byte
	if err := readFull(r, h[:], 0); err != nil {
		return nil, err
	}
	count := int(binary.LittleEndian.Uint16(h[56:]))
	kind := binary.LittleEndian.Uint16(h[16:])
	switch {
	case string(h[:4]) != "\x7fELF", h[4] != 2, h[5] != 1,
		kind != typeExec && kind != typeDyn,
		binary.LittleEndian.Uint16(h[18:]) != machineAMD64,
		binary.LittleEndian.Uint16(h[54:]) != programSize,
		count < 1 || count*programSize > maxHeaders:
		return nil, linux.ENOEXEC
	}
	i := &Image{
		Fixed: kind == typeExec, Entry: binary.LittleEndian.Uint64(h[24:]), Align: mem.PageSize,
		HeaderNum: count, headersOff: binary.LittleEndian.Uint64(h[32:]),
	}
	headers := make([]byte, count*programSize)
	if i.headersOff > 1<<62 || readFull(r, headers, int64(i.headersOff)) != nil {
		return nil, linux.ENOEXEC
	}
	for n := range count {
		if err := i.header(r, headers[n*programSize:][:programSize]); err != nil {
			return nil, err
		}
	}
	return i, i.check()
}

// readFull reads all of b. A file that ends earlier is not a program: the error is ENOEXEC.
func readFull(r io.ReaderAt, b []byte, offset int64) error {
	n, err := r.ReadAt(b, offset)
	switch {
	case n == len(b):
		return nil
	case err == nil || err == io.EOF || err == io.ErrUnexpectedEOF:
		return linux.ENOEXEC
	}
	return err
}

// header evaluates one program header.
func (i *Image) header(r io.ReaderAt, h []byte) error {
	word := binary.LittleEndian.Uint64
	flags := binary.LittleEndian.Uint32(h[4:])
	switch binary.LittleEndian.Uint32(h) {
	case ptLoad:
		i.Segments = append(i.Segments, Segment{
			Addr: word(h[16:]), Offset: word(h[8:]), FileSize: word(h[32:]), Memory: word(h[40:]), Prot: protection(flags),
		})
		if align := word(h[48:]); bits.OnesCount64(align) == 1 {
			i.Align = max(i.Align, align)
		}
	case ptPhdr:
		i.Headers = word(h[16:])
	case ptGNUStack:
		i.StackExec = flags&flagExec != 0
	case ptInterp:
		if i.Interp == "" { // if there are several, the first is used
			return i.interp(r, word(h[8:]), word(h[32:]))
		}
	}
	return nil
}

// protection returns the permissions of a segment.
func protection(flags uint32) (p mem.Prot) {
	for _, f := range [...]struct {
		bit  uint32
		prot mem.Prot
	}{{flagRead, mem.Read}, {flagWrite, mem.Write}, {flagExec, mem.Exec}} {
		if flags&f.bit != 0 {
			p |= f.prot
		}
	}
	return p
}

// interp reads the path of the dynamic loader, a string of at most PATH_MAX bytes with its terminating zero byte.
func (i *Image) interp(r io.ReaderAt, offset, size uint64) error {
	if size > pathMax || size < 2 || offset > 1<<62 {
		return linux.ENOEXEC
	}
	b := make([]byte, size)
	if err := readFull(r, b, int64(offset)); err != nil {
		return linux.EIO
	}
	if b[size-1] != 0 {
		return linux.ENOEXEC
	}
	i.Interp = cString(b)
	return nil
}

// check rejects segments whose address or size overflows, or that mmap would reject.
func (i *Image) check() error {
	if len(i.Segments) == 0 {
		return linux.EINVAL
	}
	for n, s := range i.Segments {
		switch {
		case s.FileSize > s.Memory, s.Addr > mem.End, s.Memory > mem.End-s.Addr, s.Offset > 1<<62,
			s.FileSize > 0 && s.Addr%mem.PageSize != s.Offset%mem.PageSize,
			s.Memory == 0 && n == 0:
			return linux.EINVAL
		}
		// The headers are in the segment that contains their offset, whatever PT_PHDR says.
		if s.Offset <= i.headersOff && i.headersOff < s.Offset+s.FileSize {
			i.Headers = i.headersOff - s.Offset + s.Addr
		}
	}
	if low, high := i.span(); low >= high || i.Align > mem.End {
		return linux.EINVAL
	}
	return nil
}

// span returns the range of pages that the segments cover, without the load bias.
func (i *Image) span() (low, high uint64) {
	low = mem.End
	for _, s := range i.Segments {
		low = min(low, s.Addr&^(mem.PageSize-1))
		high = max(high, pageUp(s.Addr+s.Memory))
	}
	return low, high
}

func pageUp(a uint64) uint64 { return (a + mem.PageSize - 1) &^ (mem.PageSize - 1) }

// cString returns the bytes before the first zero byte.
func cString(b []byte) string {
	for n, c := range b {
		if c == 0 {
			return string(b[:n])
		}
	}
	return string(b)
}
