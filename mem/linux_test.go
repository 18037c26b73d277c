//go:build linux && amd64

package mem_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"loam/abi/linux"
	"loam/internal/race"
	"loam/mem"
	"loam/mem/memtest"
)

// The tests make the same calls on a map of this package and on Linux. On Linux, they use a window of addresses of
// this process that nothing else uses. Errors, addresses and the lines of /proc/self/maps must agree.

const (
	twinStart = 0x4000_0000_0000
	twinPages = 48
)

type twin struct {
	testing.TB
	m    *mem.Map
	rand *rand.Rand
}

func linuxMap(top uint64) *mem.Map {
	memory := memtest.NewMemory(4)
	infinite := mem.Infinite
	return mem.New(mem.Config{
		Memory: memory, Tables: memtest.NewTables(memory), Account: &mem.Account{Total: 1 << 30},
		Layout: mem.Layout{Top: top, Floor: mem.DefaultFloor},
		Limits: mem.Limits{AS: infinite, Data: infinite, Stack: 8 << 20, Memlock: infinite, LockAny: true},
	})
}

// call makes a system call of Linux.
func call(number uintptr, args ...uint64) (uint64, error) {
	var a [6]uintptr
	for i, v := range args {
		a[i] = uintptr(v)
	}
	r, _, e := syscall.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	if e != 0 {
		return 0, e
	}
	return uint64(r), nil
}

// TestErrorsAsLinux: a call fails here with the error with which it fails on Linux, and has the same effects.
func TestErrorsAsLinux(t *testing.T) {
	seeds := uint64(250)
	if race.Enabled {
		seeds = 40
	}
	for seed := range seeds {
		w := &twin{TB: t, m: linuxMap(twinStart + twinPages*mem.PageSize), rand: rand.New(rand.NewPCG(seed, 1))}
		w.clear()
		for step := range 60 {
			text, here, there := w.step()
			if here != there {
				t.Errorf("seed %d, step %d: %s: %v, on Linux %v", seed, step, text, here, there)
			}
			if a, b := window(w.m.AppendMaps(nil)), window(ownMaps(t)); a != b {
				t.Errorf("seed %d, step %d: after %s:\n%son Linux\n%s", seed, step, text, a, b)
			}
			if t.Failed() {
				w.clear()
				return
			}
		}
		w.clear()
	}
}

func (w *twin) clear() {
	if _, err := call(linux.SYS_MUNMAP, twinStart, 1<<32); err != nil {
		w.Fatal(err)
	}
}

// window returns the lines of /proc/PID/maps for the window. It leaves out the device and the inode of shared
// anonymous memory, which differ between hosts.
func window(maps []byte) string {
	var b strings.Builder
	for line := range strings.Lines(string(maps)) {
		var start, end, offset uint64
		var prot string
		if _, err := fmt.Sscanf(line, "%x-%x %s %x", &start, &end, &prot, &offset); err == nil && start >= twinStart && end <= twinStart+1<<32 {
			fmt.Fprintf(&b, "%x-%x %s %x\n", (start-twinStart)/mem.PageSize, (end-twinStart)/mem.PageSize, prot, offset)
		}
	}
	return b.String()
}

func ownMaps(t testing.TB) []byte {
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// span returns a range of the window, sometimes with an address or a length that is not a multiple of the page size.
func (w *twin) span() (addr, length uint64) {
	first := w.rand.Uint64N(twinPages)
	count := 1 + w.rand.Uint64N(min(twinPages-first, 12))
	addr, length = twinStart+first*mem.PageSize, count*mem.PageSize
	switch w.rand.IntN(24) {
	case 0:
		addr += 8
	case 1:
		length -= 100
	case 2:
		length = 0
	case 3:
		length = 1<<47 + mem.PageSize
	case 4:
		length = ^uint64(0) - 4000
	}
	return addr, length
}

// step makes one random call on the map and on Linux.
func (w *twin) step() (text string, here, there error) {
	addr, length := w.span()
	switch w.rand.IntN(11) {
	case 0, 1, 2, 3:
		return w.mmap(addr, length)
	case 4:
		_, there = call(linux.SYS_MUNMAP, addr, length)
		return fmt.Sprintf("munmap(%x, %x)", addr, length), w.m.Munmap(addr, length), there
	case 5, 6:
		prot := uint64(w.rand.IntN(8))
		if w.rand.IntN(12) == 0 {
			prot = []uint64{8, 16, mem.ProtGrowsDown | 1, mem.ProtGrowsUp | 1, mem.ProtGrowsUp | mem.ProtGrowsDown}[w.rand.IntN(5)]
			length = min(length, mem.PageSize) // a larger range would include other regions of this process
		}
		_, there = call(linux.SYS_MPROTECT, addr, length, prot)
		return fmt.Sprintf("mprotect(%x, %x, %x)", addr, length, prot), w.m.Mprotect(addr, length, uint32(prot)), there
	case 7:
		return w.madvise(addr, length)
	case 8:
		return w.mremap(addr, length)
	case 9:
		return w.remapFilePages(addr, length)
	}
	return w.inspect(addr, length)
}

func (w *twin) mmap(addr, length uint64) (string, error, error) {
	prot := uint64(w.rand.IntN(8))
	flags := []uint64{mem.MapPrivate, mem.MapPrivate, mem.MapPrivate, mem.MapShared, 0}[w.rand.IntN(5)]
	flags |= []uint64{mem.MapFixed, mem.MapFixed, mem.MapFixedNoReplace, 0, mem.MapGrowsDown | mem.MapFixed}[w.rand.IntN(5)]
	if flags&(mem.MapFixed|mem.MapFixedNoReplace) == 0 && (length == 0 || length > twinPages*mem.PageSize || !w.fits(addr, length)) {
		flags |= mem.MapFixed // TestPlacesAsLinux tests the choice of addresses
	}
	const anonymous = 0x20
	a, there := call(linux.SYS_MMAP, addr, length, prot, flags|anonymous, ^uint64(0), 0)
	b, here := w.m.Mmap(mem.Request{Addr: addr, Length: length, Prot: mem.Prot(prot), Flags: uint32(flags)})
	text := fmt.Sprintf("mmap(%x, %x, %x, %x)", addr, length, prot, flags)
	if a != b && here == nil && there == nil {
		return text, fmt.Errorf("address %x", b), fmt.Errorf("address %x", a)
	}
	return text, here, there
}

// fits reports whether mmap will use the address hint addr: nothing is mapped in the range, or in the 257
// pages above it.
func (w *twin) fits(addr, length uint64) bool {
	start := addr &^ (mem.PageSize - 1)
	end := start + length + 257*mem.PageSize
	for line := range strings.Lines(string(w.m.AppendMaps(nil))) {
		var from, to uint64
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil || from < end && start < to {
			return false
		}
	}
	return true
}

func (w *twin) madvise(addr, length uint64) (string, error, error) {
	advice := []int{0, 1, 2, 4, 8, 9, 10, 11, 16, 17, 18, 19, 20, 22, 23, 24, 77}[w.rand.IntN(17)]
	if length > twinPages*mem.PageSize {
		length = mem.PageSize
	}
	_, there := call(linux.SYS_MADVISE, addr, length, uint64(advice))
	return fmt.Sprintf("madvise(%x, %x, %d)", addr, length, advice), w.m.Madvise(addr, length, advice), there
}

func (w *twin) mremap(addr, length uint64) (string, error, error) {
	to, size := w.span()
	flags := []uint64{0, 1, 3, 3, 3, 2, 5, 7, 4, 8}[w.rand.IntN(10)]
	if flags&mem.MremapFixed == 0 {
		if flags&mem.MremapMayMove != 0 {
			flags |= mem.MremapFixed // TestPlacesAsLinux tests the choice of addresses
		}
	}
	if length > twinPages*mem.PageSize {
		length = mem.PageSize
	}
	if w.rand.IntN(3) == 0 && flags&mem.MremapDontUnmap != 0 {
		size = length
	}
	if (size+mem.PageSize-1)/mem.PageSize == (length+mem.PageSize-1)/mem.PageSize {
		// Only one page is moved: Linux 6.17 moves several regions at once, and older releases do not.
		length, size = mem.PageSize, mem.PageSize
	}
	a, there := call(linux.SYS_MREMAP, addr, length, size, flags, to)
	b, here := w.m.Mremap(addr, length, size, uint32(flags), to)
	text := fmt.Sprintf("mremap(%x, %x, %x, %x, %x)", addr, length, size, flags, to)
	if a != b && here == nil && there == nil {
		return text, fmt.Errorf("address %x", b), fmt.Errorf("address %x", a)
	}
	return text, here, there
}

func (w *twin) remapFilePages(addr, length uint64) (string, error, error) {
	prot := uint64(max(w.rand.IntN(10)-8, 0))
	index := []uint64{0, 1, 5, 1 << 51, 1 << 63, ^uint64(0)}[w.rand.IntN(6)]
	flags := []uint64{0, mem.MapNonBlock, mem.MapFixed}[w.rand.IntN(3)]
	_, there := call(linux.SYS_REMAP_FILE_PAGES, addr, length, prot, index, flags)
	here := w.m.RemapFilePages(addr, length, uint32(prot), index, uint32(flags))
	return fmt.Sprintf("remap_file_pages(%x, %x, %x, %x, %x)", addr, length, prot, index, flags), here, there
}

// inspect makes and compares a call that does not change regions, or that only locks them (mlock).
func (w *twin) inspect(addr, length uint64) (string, error, error) {
	if length > twinPages*mem.PageSize {
		length = mem.PageSize
	}
	switch w.rand.IntN(3) {
	case 0:
		flags := uint64(w.rand.IntN(9))
		_, there := call(linux.SYS_MSYNC, addr, length, flags)
		return fmt.Sprintf("msync(%x, %x, %x)", addr, length, flags), w.m.Msync(addr, length, uint32(flags)), there
	case 1:
		here := w.m.Mlock(addr, length, 0)
		_, there := call(linux.SYS_MLOCK, addr, length)
		if here == nil || w.rand.IntN(2) == 0 {
			_ = w.m.Munlock(addr, length)
			_, _ = call(linux.SYS_MUNLOCK, addr, length)
		}
		return fmt.Sprintf("mlock(%x, %x)", addr, length), here, there
	}
	var a, b [twinPages + 1]byte
	there := mincore(addr, length, a[:])
	here := w.m.Mincore(addr, length, b[:])
	if here == nil && there == nil && !bytes.Equal(a[:], b[:]) {
		return "mincore", fmt.Errorf("%v", b), fmt.Errorf("%v", a)
	}
	return fmt.Sprintf("mincore(%x, %x)", addr, length), here, there
}

// TestPlacesAsLinux: the kernel of the host and a map with the same regions choose the same address.
func TestPlacesAsLinux(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	r := rand.New(rand.NewPCG(3, 4))
	tried := 0
	for range 400 {
		before := ownMaps(t)
		size := (1 + r.Uint64N(64)) * mem.PageSize << (3 * r.IntN(4))
		if r.IntN(4) == 0 {
			size = mem.BlockSize * (1 + r.Uint64N(3))
		}
		flags := uint64(mem.MapPrivate | 0x20)
		got, err := call(linux.SYS_MMAP, 0, size, 0, flags, ^uint64(0), 0)
		if err != nil {
			t.Fatal(err)
		}
		after := ownMaps(t)
		if bytes.Count(after, []byte("\n")) < bytes.Count(before, []byte("\n")) || got == 0 {
			continue
		}
		if want := placeAmong(t, before, size); want != got {
			_, _ = call(linux.SYS_MUNMAP, got, size)
			if !bytes.Equal(ownMaps(t), before) {
				continue // the Go runtime has mapped memory meanwhile
			}
			t.Fatalf("%d bytes: placed at %x, on Linux %x, among\n%s", size, want, got, before)
		}
		tried++
		if r.IntN(3) == 0 { // leave a hole in which later mappings may be placed
			hole := r.Uint64N(size/mem.PageSize) * mem.PageSize
			_, _ = call(linux.SYS_MUNMAP, got+hole, size-hole)
			defer func() { _, _ = call(linux.SYS_MUNMAP, got, hole) }()
		} else {
			defer func() { _, _ = call(linux.SYS_MUNMAP, got, size) }()
		}
	}
	if tried < 100 {
		t.Errorf("only %d placements compared", tried)
	}
}

// TestLowPlaces: a mapping with MAP_32BIT is below 2 GiB. Linux chooses a random address there.
func TestLowPlaces(t *testing.T) {
	const flags = mem.MapPrivate | mem.Map32Bit | mem.MapNoReserve
	m := linuxMap(twinStart)
	for _, size := range []uint64{mem.PageSize, 1 << 29, 1 << 31} {
		for _, hint := range []uint64{0, 5 << 28, twinStart} {
			a, there := call(linux.SYS_MMAP, hint, size, 0, flags|0x20, ^uint64(0), 0)
			b, here := m.Mmap(mem.Request{Addr: hint, Length: size, Flags: flags})
			if here != there {
				t.Errorf("%x bytes at %x: %v, on Linux %v", size, hint, here, there)
			}
			if here != nil || there != nil {
				continue
			}
			for _, addr := range []uint64{a, b} {
				if addr < 1<<30 || addr > 1<<31-size || hint == 5<<28 && addr != hint {
					t.Errorf("%x bytes at %x: placed at %x, on Linux at %x", size, hint, b, a)
				}
			}
			if _, err := call(linux.SYS_MUNMAP, a, size); err != nil {
				t.Fatal(err)
			}
			if err := m.Munmap(b, size); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// placeAmong makes a map with the regions that a text of /proc/PID/maps lists, and returns the address at
// which it places a new mapping of size bytes. The text does not show the top of the area for mappings.
// placeAmong uses the end of the last region below the stack, because the kernel placed that region first, at
// the top.
func placeAmong(t *testing.T, maps []byte, size uint64) uint64 {
	var ranges [][2]uint64
	top, stack := uint64(0), false
	for line := range strings.Lines(string(maps)) {
		var start, end uint64
		if _, err := fmt.Sscanf(line, "%x-%x", &start, &end); err != nil || end > mem.End {
			continue
		}
		stack = stack || strings.Contains(line, "[stack]")
		if !stack {
			top = max(top, end)
		}
		ranges = append(ranges, [2]uint64{start, end})
	}
	m := linuxMap(top)
	for _, r := range ranges {
		if _, err := m.Mmap(mem.Request{Addr: r[0], Length: r[1] - r[0], Flags: mem.MapPrivate | mem.MapFixed}); err != nil {
			t.Fatal(err)
		}
	}
	addr, err := m.Mmap(mem.Request{Length: size, Flags: mem.MapPrivate})
	if err != nil {
		t.Fatal(err)
	}
	return addr
}
