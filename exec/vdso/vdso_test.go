//go:build linux && amd64

package vdso

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"loam/abi/linux"
)

// TestSymbols: package debug/elf, an independent ELF reader, finds the functions.
func TestSymbols(t *testing.T) {
	f, err := elf.NewFile(bytes.NewReader(Image()))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Progs) != 2 || f.Progs[0].Filesz > pageSize || f.Machine != elf.EM_X86_64 || f.Type != elf.ET_DYN {
		t.Errorf("%+v", f.FileHeader)
	}
	for _, name := range append(names, "clock_gettime", "time") {
		if value(t, name) == 0 {
			t.Errorf("%s is not found", name)
		}
	}
}

// TestVersions: according to package debug/elf, all functions have the symbol version that Linux's vDSO has.
func TestVersions(t *testing.T) {
	f, err := elf.NewFile(bytes.NewReader(Image()))
	if err != nil {
		t.Fatal(err)
	}
	d := f.Progs[1]
	tags := map[elf.DynTag]uint64{}
	image := Image()
	for b := image[d.Off:]; binary.LittleEndian.Uint64(b) != 0; b = b[16:] {
		tags[elf.DynTag(binary.LittleEndian.Uint64(b))] = binary.LittleEndian.Uint64(b[8:])
	}
	if tags[elf.DT_VERDEFNUM] != 2 {
		t.Errorf("%d definitions", tags[elf.DT_VERDEFNUM])
	}
	base := image[tags[elf.DT_VERDEF]:]
	second := base[binary.LittleEndian.Uint32(base[16:]):]
	const hashOfLinux26 = 0x3ae75f6
	if got := binary.LittleEndian.Uint32(second[8:]); got != hashOfLinux26 || binary.LittleEndian.Uint16(second[4:]) != versionIndex {
		t.Errorf("hash %#x, index %d", got, second[4])
	}
	name := binary.LittleEndian.Uint32(second[binary.LittleEndian.Uint32(second[12:]):])
	text := image[tags[elf.DT_STRTAB]+uint64(name):]
	if got := string(text[:bytes.IndexByte(text, 0)]); got != "LINUX_2.6" {
		t.Errorf("the version is %q", got)
	}
	for i := range 2*len(names) + 1 {
		want := uint16(versionIndex)
		if i == 0 {
			want = 0
		}
		if v := binary.LittleEndian.Uint16(image[tags[elf.DT_VERSYM]+2*uint64(i):]); v != want {
			t.Errorf("symbol %d has version %d", i, v)
		}
	}
}

// value looks a symbol up as a dynamic loader does, by the hash table.
func value(t *testing.T, name string) uint64 {
	t.Helper()
	image := Image()
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		t.Fatal(err)
	}
	tags := map[elf.DynTag]uint64{}
	for d := image[f.Progs[1].Off:]; binary.LittleEndian.Uint64(d) != 0; d = d[16:] {
		tags[elf.DynTag(binary.LittleEndian.Uint64(d))] = binary.LittleEndian.Uint64(d[8:])
	}
	hash := image[tags[elf.DT_HASH]:]
	word := func(i uint32) uint32 { return binary.LittleEndian.Uint32(hash[4*i:]) }
	for i := word(2 + sysvHash(name)%word(0)); i != 0; i = word(2 + word(0) + i) {
		symbol := image[tags[elf.DT_SYMTAB]+uint64(i)*symbolSize:]
		text := image[tags[elf.DT_STRTAB]+uint64(binary.LittleEndian.Uint32(symbol)):]
		if string(text[:bytes.IndexByte(text, 0)]) == name {
			return binary.LittleEndian.Uint64(symbol[8:])
		}
	}
	return 0
}

// dataBytes returns the page of data.
func dataBytes(d *Data) []byte {
	b := &builder{}
	b.halves(d.sequence.Load(), d.counter.Load())
	b.words(d.start.Load(), d.mult.Load())
	b.halves(d.shift.Load(), d.cpu.Load())
	b.words(d.base.Load())
	b.halves(d.clocks.Load())
	b.bytes = append(b.bytes, make([]byte, atOffset-len(b.bytes))...)
	for i := range d.offset {
		b.words(d.offset[i].Load())
	}
	return append(b.bytes, make([]byte, pageSize-len(b.bytes))...)
}

// resultSize is the number of bytes that the program writes.
const resultSize = 128

// program returns an ELF file with the page of data and the vDSO at fixed addresses. Its code calls the functions of
// the vDSO and writes their results to standard output.
func program(t *testing.T, d *Data) []byte {
	const load = 0x400000 // address of the file's first page (headers and code); data, vDSO and results follow
	const data, image, results = load + pageSize, load + 2*pageSize, load + 3*pageSize
	c := &code{}
	counter := func(at uint32) { // emits code that stores the time stamp counter
		c.Emit(0x0f, 0xae, 0xe8, 0x0f, 0x31, 0x48, 0xc1, 0xe2, 32, 0x48, 0x09, 0xd0) // lfence; rdtsc; into rax
		c.Emit(0x48, 0x89, 0x04, 0x25)                                               // mov [at], rax
		c.Emit(binary.LittleEndian.AppendUint32(nil, results+at)...)
	}
	call := func(name string, di, si uint32) {
		c.Emit(0xbf)
		c.Emit(binary.LittleEndian.AppendUint32(nil, di)...)
		c.Emit(0xbe)
		c.Emit(binary.LittleEndian.AppendUint32(nil, si)...)
		c.To(name, 0xe8)
	}
	c.Emit(0x48, 0x83, 0xec, 8)
	counter(0)
	call("__vdso_clock_gettime", 1, results+8)
	counter(24)
	call("__vdso_clock_gettime", 0, results+32)
	call("__vdso_gettimeofday", results+48, 0)
	call("__vdso_time", results+64, 0)
	call("__vdso_clock_gettime", 7, results+72) // the page does not have this clock: the vDSO makes the system call
	call("__vdso_getcpu", results+88, results+92)
	call("__vdso_clock_gettime", 5, results+96)
	call("__vdso_clock_gettime", 6, results+112)
	c.Emit(0xb8, 1, 0, 0, 0, 0xbf, 1, 0, 0, 0, 0xbe) // write(1, results, resultSize)
	c.Emit(binary.LittleEndian.AppendUint32(nil, results)...)
	c.Emit(0xba, resultSize, 0, 0, 0, 0x0f, 0x05)
	c.Emit(0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05) // exit(0)
	others := map[string]int{}
	for _, n := range names {
		others[n] = int(image+value(t, n)) - (load + headers + 56)
	}
	c.Link(others)

	h := &builder{append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)}
	h.halves(2|62<<16, 1)
	h.words(load+headers+56, 64, 0)
	h.halves(0, 64|56<<16, 3, 0)
	segment := func(flags uint32, offset, addr, file, memory uint64) {
		h.halves(1, flags)
		h.words(offset, addr, addr, file, memory, pageSize)
	}
	segment(5, 0, load, pageSize, pageSize)
	segment(4, pageSize, data, pageSize, pageSize)
	segment(7, 2*pageSize, image, pageSize, 2*pageSize)
	file := append(h.bytes, c.Bytes...)
	file = append(file, make([]byte, pageSize-len(file))...)
	return append(append(file, dataBytes(d)...), Image()...)
}

// TestOnHost: a program that maps the image reads clocks that agree with the counter and the data.
func TestOnHost(t *testing.T) {
	const shift, mult = 32, 1<<32*10/27 + 12345 // parameters for a counter of about 2.7 GHz
	const base, offset = 123_456_789_012, 1_700_000_000_987_654_321
	d := &Data{}
	d.Update(Clock{Counter: 1000, Mult: mult, Shift: shift, Base: base, Offered: 0b110_0011, Offset: [Clocks]uint64{0: offset, 5: offset}})
	d.OfferCPU()
	out := run(t, d)
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(out[at:]) }
	nanoseconds := func(counter uint64) uint64 {
		high, low := bits.Mul64(counter-1000, mult)
		return high<<(64-shift) | low>>shift
	}
	monotonic := word(8)*1e9 + word(16)
	if low, high := base+nanoseconds(word(0)), base+nanoseconds(word(24)); monotonic < low || monotonic > high {
		t.Errorf("CLOCK_MONOTONIC is %d, not from %d to %d", monotonic, low, high)
	}
	realtime := word(32)*1e9 + word(40)
	if d := realtime - monotonic - offset; d > uint64(time.Second) {
		t.Errorf("CLOCK_REALTIME is %d later than its offset", d)
	}
	if d := word(48)*1e6 + word(56) - realtime/1000; d > 1e6 || word(56) >= 1e6 {
		t.Errorf("gettimeofday returns %d.%06d after %d ns", word(48), word(56), realtime)
	}
	if d := word(64) - word(48); d > 1 {
		t.Errorf("time returns %d after %d", word(64), word(48))
	}
	if word(72) == 0 || word(80) >= 1e9 {
		t.Errorf("CLOCK_BOOTTIME is %d.%09d", word(72), word(80))
	}
	for at, fine := range map[int]uint64{96: realtime, 112: monotonic} {
		coarse := word(at)*1e9 + word(at+8)
		if late := coarse + linux.Tick - fine; coarse%linux.Tick != 0 || late > uint64(time.Second) {
			t.Errorf("the coarse clock at %d is %d, and the fine clock was %d before", at, coarse, fine)
		}
	}
	if cpu := binary.LittleEndian.Uint32(out[88:]); cpu >= 4096 || binary.LittleEndian.Uint32(out[92:]) > 64 {
		t.Errorf("CPU %d", cpu)
	}
}

// run runs the program and returns its results.
func run(t *testing.T, d *Data) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "p")
	if err := os.WriteFile(file, program(t, d), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(file).Output()
	if err != nil || len(out) != resultSize {
		t.Fatalf("%v, %d bytes", err, len(out))
	}
	return out
}

// TestSystemCalls: without a counter, and without CPU numbers, the functions make the system call.
func TestSystemCalls(t *testing.T) {
	stopped := &Data{}
	stopped.Update(Clock{Mult: 1, Shift: 1, Offered: 0b11})
	stopped.Stop()
	for _, d := range []*Data{{}, stopped} {
		before := time.Now().Unix()
		out := run(t, d)
		after := time.Now().Unix()
		for name, at := range map[string]int{"clock_gettime": 32, "gettimeofday": 48, "time": 64} {
			if s := int64(binary.LittleEndian.Uint64(out[at:])); s < before || s > after {
				t.Errorf("%s returns %d, not from %d to %d", name, s, before, after)
			}
		}
	}
}
