package kernel

import (
	"strings"
	"testing"

	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/kernel/space"
)

// Memory: details of the calls that sequences of random calls (sequence_test.go) do not check.

// A length that overflows, or an address inside a page, returns the error of Linux, and changes nothing.
func TestMemoryRanges(t *testing.T) {
	u := newUser(t)
	at := u.memory(4, protRead|protWrite)
	u.write(at, 1)
	const (
		all     = ^uint64(0)
		private = mapPrivate | mapAnon
		fixed   = private | mapFixed
	)
	for _, c := range []struct {
		want   linux.Errno
		number uint64
		args   []uint64
	}{
		{linux.ENOMEM, linux.SYS_MMAP, []uint64{0, all, protRead, private}},
		{linux.ENOMEM, linux.SYS_MMAP, []uint64{0, all - pageSize, protRead, private}},
		{linux.ENOMEM, linux.SYS_MMAP, []uint64{at, -at, protRead, fixed}},
		{linux.ENOMEM, linux.SYS_MMAP, []uint64{pageSize, pageSize, protRead, fixed}}, // outside of the program's addresses
		{linux.EINVAL, linux.SYS_MUNMAP, []uint64{at, all}},
		{linux.EINVAL, linux.SYS_MUNMAP, []uint64{at, -at}},
		{linux.EINVAL, linux.SYS_MUNMAP, []uint64{at + 8, pageSize}},
		{linux.EINVAL, linux.SYS_MPROTECT, []uint64{at + 8, pageSize, protRead}},
		{linux.EINVAL, linux.SYS_MPROTECT, []uint64{at + 8, 0, protRead}},
		{linux.ENOMEM, linux.SYS_MPROTECT, []uint64{at, all &^ (pageSize - 1), protRead}},
		{linux.ENOMEM, linux.SYS_MPROTECT, []uint64{at, all, protRead}},
		{linux.ENOMEM, linux.SYS_MPROTECT, []uint64{at, -at, protRead}},
		{linux.EINVAL, linux.SYS_MADVISE, []uint64{at, all, linux.MADV_DONTNEED}},
		{linux.EINVAL, linux.SYS_MADVISE, []uint64{at, all &^ (pageSize - 1), linux.MADV_DONTNEED}},
		{linux.EINVAL, linux.SYS_MADVISE, []uint64{at, -at + pageSize, linux.MADV_DONTNEED}},
		{linux.ENOMEM, linux.SYS_MADVISE, []uint64{at, 1 << 40, linux.MADV_DONTNEED}},
		{linux.EINVAL, linux.SYS_MLOCK, []uint64{at, all &^ (pageSize - 1)}},
		{linux.EINVAL, linux.SYS_MUNLOCK, []uint64{at, -at + pageSize}},
		{linux.ENOMEM, linux.SYS_MLOCK, []uint64{8, 8}},
		{linux.ENOMEM, linux.SYS_MINCORE, []uint64{at, all &^ (pageSize - 1), at}},
		{linux.ENOMEM, linux.SYS_MINCORE, []uint64{at, -at + pageSize, at}},
		{linux.EFAULT, linux.SYS_MREMAP, []uint64{at, all &^ (pageSize - 1), pageSize, 0}},
		{linux.EINVAL, linux.SYS_MREMAP, []uint64{at, pageSize, 2 * pageSize, 2}},
		{linux.EINVAL, linux.SYS_MREMAP, []uint64{at, pageSize, 2 * pageSize, 8}},
	} {
		u.fails(c.want, c.number, c.args...)
	}
	if v := u.read(at); v != 1 {
		t.Errorf("the memory contains %d", v)
	}
	u.write(at, 2)
	for _, number := range []uint64{linux.SYS_MLOCK, linux.SYS_MUNLOCK, linux.SYS_MADVISE, linux.SYS_MPROTECT, linux.SYS_MINCORE} {
		u.want(0, number, at, 0, 0)
	}
	u.want(0, linux.SYS_MLOCK, at+8, 3*pageSize) // the range is extended to whole pages
	u.fails(linux.ENOMEM, linux.SYS_MLOCK, at+8, 4*pageSize)
}

// Every advice of madvise(2) that Linux knows is accepted. Only MADV_DONTNEED and MADV_FREE lose the content.
func TestAdvice(t *testing.T) {
	u := newUser(t)
	at := u.memory(1, protRead|protWrite)
	const firstReserved, lastReserved = 5, 7
	for advice := range uint64(30) {
		u.write(at, 7)
		switch {
		case advice >= firstReserved && advice <= lastReserved, advice == 9, advice == 24, advice > 25:
			u.fails(linux.EINVAL, linux.SYS_MADVISE, at, pageSize, advice)
		default:
			u.want(0, linux.SYS_MADVISE, at, pageSize, advice)
		}
		want := uint64(7)
		if advice == linux.MADV_DONTNEED || advice == linux.MADV_FREE {
			want = 0
		}
		if got := u.read(at); got != want {
			t.Errorf("after advice %d the memory contains %d", advice, got)
		}
	}
	u.fails(linux.EINVAL, linux.SYS_MADVISE, at, pageSize, ^uint64(0))
}

// A hint is used if it is free and among the program's addresses. Otherwise the mapping is elsewhere.
func TestHints(t *testing.T) {
	u := newUser(t)
	at := u.memory(3, protRead|protWrite)
	free := at + 512<<20
	u.want(int64(free), linux.SYS_MMAP, free, 2*pageSize, protRead, mapPrivate|mapAnon)
	for _, hint := range []uint64{at, at + 2*pageSize, free + pageSize, free - pageSize, 1 << 46, 8, free + 8*pageSize + 8, ^uint64(0)} {
		got := u.call(linux.SYS_MMAP, hint, 2*pageSize, protRead, mapPrivate|mapAnon)
		if got < 0 || uint64(got) == hint || uint64(got)%pageSize != 0 {
			t.Errorf("hint %#x: %#x", hint, got)
		}
	}
	const noReplace = 0x100000
	u.want(int64(free+16*pageSize), linux.SYS_MMAP, free+16*pageSize, pageSize, protRead, mapPrivate|mapAnon|noReplace)
	u.fails(linux.EEXIST, linux.SYS_MMAP, free+15*pageSize, 2*pageSize, protRead, mapPrivate|mapAnon|noReplace)
}

// Big mappings are aligned to big pages, and mappings for Go's heap to its arenas.
func TestAlignment(t *testing.T) {
	u := newUser(t)
	u.memory(1, protRead)
	for size, align := range map[uint64]uint64{
		pageSize: pageSize, amd64.BigPageSize - pageSize: pageSize, amd64.BigPageSize: amd64.BigPageSize,
		64<<20 - pageSize: amd64.BigPageSize, 64 << 20: 64 << 20, 128 << 20: 64 << 20,
	} {
		if at := u.call(linux.SYS_MMAP, 0, size, protNone, mapPrivate|mapAnon); at < 0 || uint64(at)%align != 0 {
			t.Errorf("%d bytes at %#x, want a multiple of %#x", size, at, align)
		}
	}
}

// A mapping that is larger than the machine could never be used. It is refused, and the console says how much there is.
// Reserved addresses may be larger.
func TestLargerThanMemory(t *testing.T) {
	u := newUser(t)
	const size = 512 << 20
	u.fails(linux.ENOMEM, linux.SYS_MMAP, 0, size, protRead|protWrite, mapPrivate|mapAnon)
	if got := string(u.machine.output); !strings.HasPrefix(got, "loam: the program asks for 512 MiB of memory at once, and of 60 MiB there are 59 free;") {
		t.Errorf("output: %s", got)
	}
	if at := u.call(linux.SYS_MMAP, 0, size, protNone, mapPrivate|mapAnon); at < 0 {
		t.Errorf("reserved addresses: %d", at)
	}
	if at := u.call(linux.SYS_MMAP, 0, 100<<20, protRead|protWrite, mapPrivate|mapAnon); at < 0 {
		t.Errorf("a mapping that is used sparsely: %d", at)
	}
}

// The program's addresses have as many regions as fit into the table. Then a call that would add one fails.
func TestTooManyRegions(t *testing.T) {
	u := newUser(t)
	const size = 3 * space.MaxRegions
	at := u.memory(size, protNone)
	for i := uint64(0); ; i++ {
		if i == space.MaxRegions {
			t.Fatal("there is no limit")
		}
		result := u.call(linux.SYS_MPROTECT, at+(2*i+1)*pageSize, pageSize, protRead)
		if result == -int64(linux.ENOMEM) {
			break
		}
		if result != 0 {
			t.Fatalf("mprotect returns %d", result)
		}
	}
	u.call(linux.SYS_MUNMAP, at+(size-4)*pageSize, pageSize) // there may be room for one more region
	u.fails(linux.ENOMEM, linux.SYS_MUNMAP, at+(size-2)*pageSize, pageSize)
	u.want(0, linux.SYS_MUNMAP, at, size*pageSize)
	u.memory(1, protRead)
}

// mremap(2) of a big page moves its pages one by one, with their content and without those that were never used.
func TestRemapBigPage(t *testing.T) {
	u := newUser(t)
	const size, mayMove = 4 * amd64.BigPageSize, 1
	at := u.memory(size/pageSize, protRead|protWrite)
	for offset := uint64(0); offset < size; offset += pageSize {
		u.write(at+offset, offset+1)
	}
	u.want(0, linux.SYS_MADVISE, at+7*pageSize, pageSize, linux.MADV_DONTNEED)
	guard := at + size
	u.want(int64(guard), linux.SYS_MMAP, guard, pageSize, protNone, mapPrivate|mapAnon|mapFixed)
	to := uint64(u.call(linux.SYS_MREMAP, at, size, size+pageSize, mayMove))
	if to == at || to%pageSize != 0 {
		t.Fatalf("mremap returns %#x", to)
	}
	for offset := uint64(0); offset <= size; offset += pageSize {
		want := offset + 1
		if offset == 7*pageSize || offset == size {
			want = 0
		}
		if got := u.read(to + offset); got != want {
			t.Fatalf("at %#x: %d, want %d", offset, got, want)
		}
	}
	u.want(0, linux.SYS_MUNMAP, at, size) // nothing is there
}

// Memory without rights keeps its content when it moves.
func TestRemapWithoutRights(t *testing.T) {
	u := newUser(t)
	const mayMove = 1
	at := u.memory(1, protRead|protWrite)
	u.write(at, 5)
	u.want(0, linux.SYS_MPROTECT, at, pageSize, protNone)
	u.want(int64(at+pageSize), linux.SYS_MMAP, at+pageSize, pageSize, protRead, mapPrivate|mapAnon|mapFixed)
	to := uint64(u.call(linux.SYS_MREMAP, at, pageSize, 2*pageSize, mayMove))
	u.want(0, linux.SYS_MPROTECT, to, pageSize, protRead)
	if got := u.read(to); got != 5 {
		t.Errorf("moved memory contains %d", got)
	}
}

// Without memory for the copy, mremap(2) fails and leaves the memory where it is.
func TestRemapOutOfMemory(t *testing.T) {
	u := newUser(t)
	const mayMove = 1
	at := u.memory(2, protRead|protWrite)
	u.write(at, 5)
	u.write(at+pageSize, 6)
	u.want(int64(at+2*pageSize), linux.SYS_MMAP, at+2*pageSize, pageSize, protRead, mapPrivate|mapAnon|mapFixed)
	u.exhaust()
	u.fails(linux.ENOMEM, linux.SYS_MREMAP, at, 2*pageSize, 4*pageSize, mayMove)
	if a, b := u.read(at), u.read(at+pageSize); a != 5 || b != 6 {
		t.Errorf("the memory contains %d and %d", a, b)
	}
}

// Big pages are used only for memory that is filled upwards, and only while there is plenty of memory.
func TestWhenPagesAreBig(t *testing.T) {
	const big = amd64.BigPageSize
	sizeAt := func(u user, at uint64) uint64 {
		u.write(at, 1)
		_, size := u.kernel().tables.Lookup(at)
		return size
	}
	u := newUser(t)
	at := u.memory(6*big/pageSize, protRead|protWrite)
	at = (at + big - 1) &^ (big - 1)
	if size := sizeAt(u, at); size != pageSize {
		t.Errorf("the first page has %d bytes", size)
	}
	if size := sizeAt(u, at+3*big); size != pageSize {
		t.Errorf("a page after a gap has %d bytes", size)
	}
	u.want(0, linux.SYS_MADVISE, at, 6*big-big, linux.MADV_DONTNEED)
	for offset := uint64(0); offset < big; offset += pageSize {
		u.write(at+offset, 1)
	}
	if size := sizeAt(u, at+big+5*pageSize); size != big {
		t.Errorf("a page above filled memory has %d bytes", size)
	}
	var taken []uint64
	for free, total := u.kernel().pages.Pages(); free >= total/4; free, _ = u.kernel().pages.Pages() {
		pa, _ := u.kernel().pages.Take()
		taken = append(taken, pa)
	}
	if size := sizeAt(u, at+2*big+pageSize); size != pageSize {
		t.Errorf("with little memory a page has %d bytes", size)
	}
	for _, pa := range taken {
		u.kernel().pages.Free(pa)
	}
}

// The core's own accesses to the program's memory populate it, and see the same rights as the program.
func TestCoreAccess(t *testing.T) {
	u := newUser(t)
	k := u.kernel()
	readable, writable, none := u.memory(1, protRead), u.memory(3, protRead|protWrite), u.memory(1, protNone)
	for _, c := range []struct {
		addr, size uint64
		want       space.Rights
		ok         bool
	}{
		{writable, 3 * pageSize, space.Write, true},
		{writable + 8, 3*pageSize - 8, space.Write, true},
		{writable + 8, 1 << 40, space.Write, false},
		{readable, 1, space.Read, true},
		{readable, 1, space.Write, false},
		{none, 1, space.Read, false},
		{none, 0, space.Write, true},
		{0, 1, space.Read, false},
		{^uint64(0), 2, space.Read, false},
		{^uint64(0) - 7, 8, space.Read, false},
		{1 << 63, 8, space.Read, false},
	} {
		if ok := k.touch(c.addr, c.size, c.want); ok != c.ok {
			t.Errorf("%d bytes at %#x, rights %d: %v", c.size, c.addr, c.want, ok)
		}
	}
	for va := writable; va < writable+3*pageSize; va += pageSize {
		if entry, _ := k.tables.Lookup(va); entry&amd64.PagePresent == 0 {
			t.Errorf("no page at %#x", va)
		}
	}
}
