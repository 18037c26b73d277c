package boot

import (
	"slices"
	"testing"
)

// machine returns physical memory with the data that a monitor passes.
func machine() []byte {
	m := make([]byte, 0x5000)
	le.PutUint32(m[0x1000:], pvhMagic)
	le.PutUint32(m[0x1004:], 1)
	le.PutUint32(m[0x100c:], 1)      // number of modules: one
	le.PutUint64(m[0x1010:], 0x1100) // address of the description of the module
	le.PutUint64(m[0x1018:], 0x1200) // address of the command line
	le.PutUint64(m[0x1020:], 0xe0000)
	le.PutUint64(m[0x1028:], 0x1300) // address of the memory map
	le.PutUint32(m[0x1030:], 4)
	le.PutUint64(m[0x1100:], 0x2000)
	le.PutUint64(m[0x1108:], 5)
	copy(m[0x1200:], "-v x\x00")
	copy(m[0x2000:], "hello")
	for i, r := range []struct{ start, size, kind uint64 }{
		{0, 0x9fc00, 1}, {0x9fc00, 0x400, 2}, {0x100000, 0x7ee0000, 1}, {1 << 51, 1 << 63, 1},
	} {
		le.PutUint64(m[0x1300+24*i:], r.start)
		le.PutUint64(m[0x1308+24*i:], r.size)
		le.PutUint32(m[0x1310+24*i:], uint32(r.kind))
	}
	return m
}

func TestParsePVH(t *testing.T) {
	var info Info
	m := machine()
	if p := ParsePVH(m, 0x1000, &info); p != "" {
		t.Fatal(p)
	}
	// excludes reserved ranges, and addresses beyond the processor's limit
	want := []Range{{0, 0x9fc00}, {0x100000, 0x7fe0000}}
	if info.Ranges != 2 || info.Usable[0] != want[0] || info.Usable[1] != want[1] {
		t.Errorf("memory %x", info.Usable[:info.Ranges])
	}
	if string(m[info.Module.Start:info.Module.End]) != "hello" || info.RSDP != 0xe0000 {
		t.Errorf("module %x, RSDP %x", info.Module, info.RSDP)
	}
	if c := info.CommandLine; string(m[c.Start:c.End]) != "-v x" {
		t.Errorf("command line %q", m[c.Start:c.End])
	}
}

// Each kind of invalid data from a monitor returns its Problem.
func TestParsePVHProblems(t *testing.T) {
	for want, spoil := range map[Problem]func(m []byte){
		NoStartInfo: func(m []byte) { m[0x1000]++ },
		NoMemoryMap: func(m []byte) { le.PutUint32(m[0x1004:], 0) },
		BadModule:   func(m []byte) { le.PutUint64(m[0x1108:], 1<<63) },
	} {
		m := machine()
		spoil(m)
		var info Info
		if got := ParsePVH(m, 0x1000, &info); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	var info Info
	if got := ParsePVH(machine(), 0x4ff0, &info); got != NoStartInfo {
		t.Errorf("at the end of memory: %q", got)
	}
}

// memoryMap returns the memory of machine with the given memory map: address, size and type of each entry.
func memoryMap(list ...[3]uint64) []byte {
	m := machine()
	le.PutUint32(m[0x1030:], uint32(len(list)))
	for i, r := range list {
		le.PutUint64(m[0x1300+24*i:], r[0])
		le.PutUint64(m[0x1308+24*i:], r[1])
		le.PutUint64(m[0x1310+24*i:], r[2])
	}
	return m
}

// Memory that is listed twice is used once, and memory that is also listed with another type is not used, in any
// order of the entries.
func TestMemoryMapsThatOverlap(t *testing.T) {
	const size, reserved = maxPhysical / 2, 2
	for _, c := range []struct {
		list [][3]uint64
		want []Range
	}{
		{[][3]uint64{{0, 0x9000, 1}, {0, 0x9000, 1}}, []Range{{0, 0x9000}}},
		{[][3]uint64{{0, 0x9000, 1}, {0x5000, 0x9000, 1}}, []Range{{0, 0x5000}, {0x5000, 0xe000}}},
		{[][3]uint64{{0x5000, 0x1000, 1}, {0, 0x9000, 1}}, []Range{{0, 0x9000}}},
		{[][3]uint64{{0, 0x9000, 1}, {0x5000, 0x1000, 1}}, []Range{{0, 0x5000}, {0x6000, 0x9000}, {0x5000, 0x6000}}},
		{[][3]uint64{{0, 0x9000, 1}, {0x5000, 0x1000, reserved}}, []Range{{0, 0x5000}, {0x6000, 0x9000}}},
		{[][3]uint64{{0x5000, 0x1000, reserved}, {0, 0x9000, 1}}, []Range{{0, 0x5000}, {0x6000, 0x9000}}},
		{[][3]uint64{{0, 0x9000, 1}, {0x8000, 1<<64 - 1, reserved}}, []Range{{0, 0x8000}}},
		{[][3]uint64{{0, 0x9000, 1}, {0x5000, 0, reserved}}, []Range{{0, 0x9000}}},
		{[][3]uint64{{0, size, 1}, {maxPhysical, size, reserved}}, []Range{{0, size}}},
	} {
		var info Info
		if p := ParsePVH(memoryMap(c.list...), 0x1000, &info); p != "" {
			t.Errorf("%x: %s", c.list, p)
		}
		if got := info.Usable[:info.Ranges]; !slices.Equal(got, c.want) {
			t.Errorf("%x: %x, want %x", c.list, got, c.want)
		}
	}
	var info Info
	if p := ParsePVH(memoryMap([3]uint64{0, 0x9000, 1}, [3]uint64{0, 0x9000, reserved}), 0x1000, &info); p != NoMemoryMap {
		t.Errorf("all of it is something else: %q", p)
	}
}

// If a map divides memory into more than MaxRanges ranges, the rest is left out.
func TestMemoryMapOfManyPieces(t *testing.T) {
	list := [][3]uint64{{0, 1 << 30, 1}}
	for i := range uint64(2 * MaxRanges) {
		list = append(list, [3]uint64{i<<20 + 0x1000, 0x1000, 2})
	}
	var info Info
	m := memoryMap(list...)
	if p := ParsePVH(m, 0x1000, &info); p != "" || info.Ranges != MaxRanges {
		t.Fatalf("%q, %d ranges", p, info.Ranges)
	}
	checkInfo(t, m, &info)
}

func FuzzParsePVH(f *testing.F) {
	f.Add(machine(), uint64(0x1000))
	f.Add([]byte{}, uint64(0))
	f.Fuzz(func(t *testing.T, m []byte, at uint64) {
		var info Info
		if ParsePVH(m, at, &info) != "" {
			return
		}
		checkInfo(t, m, &info)
	})
}

// checkInfo checks the consistency of info, which was read from arbitrary memory.
func checkInfo(t *testing.T, m []byte, info *Info) {
	size := uint64(len(m))
	if info.Module.End > size || info.Module.Start > info.Module.End || info.CommandLine.End > size {
		t.Errorf("outside of memory: %x", info)
	}
	for i, r := range info.Usable[:info.Ranges] {
		for _, other := range info.Usable[:i] {
			if r.Start < other.End && other.Start < r.End {
				t.Errorf("%x overlaps %x", r, other)
			}
		}
		if r.Start >= r.End || r.End > maxPhysical {
			t.Errorf("range %x", r)
		}
		for _, piece := range r.Without(info.Module) {
			if piece.Start < piece.End && (piece.Start < r.Start || piece.End > r.End) {
				t.Errorf("%x is not of %x", piece, r)
			}
		}
	}
}

func TestParsePVHAllocatesNothing(t *testing.T) {
	m := machine()
	var info Info
	if n := testing.AllocsPerRun(10, func() { info = Info{}; ParsePVH(m, 0x1000, &info) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
