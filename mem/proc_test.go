package mem_test

import (
	"math"
	"strings"
	"testing"

	"loam/abi/linux"
	"loam/internal/race"
	"loam/mem"
	"loam/mem/memtest"
)

// limited returns a map with limits.
func limited(l mem.Limits, account *mem.Account) (*mem.Map, *memtest.Tables) {
	memory := memtest.NewMemory(2)
	tables := memtest.NewTables(memory)
	return mem.New(mem.Config{Memory: memory, Tables: tables, Account: account, Layout: mem.NewLayout(8<<20, nil), Limits: l}), tables
}

func noLimits() mem.Limits {
	return mem.Limits{AS: mem.Infinite, Data: mem.Infinite, Stack: mem.Infinite, Memlock: mem.Infinite}
}

// TestBreak: the heap grows and shrinks by bytes; it stops at the next mapping above it and at RLIMIT_DATA.
func TestBreak(t *testing.T) {
	const start = 0x55555000
	l := noLimits()
	l.Data = 16 * mem.PageSize
	m, tables := limited(l, &mem.Account{Total: 1 << 20})
	m.SetBreak(start + 8)
	for _, test := range []struct{ to, want uint64 }{
		{0, start + 8},
		{start + 100, start + 100},
		{start + 3*mem.PageSize + 1, start + 3*mem.PageSize + 1},
		{start, start + 3*mem.PageSize + 1}, // an end below the start of the heap
		{start + 17*mem.PageSize, start + 3*mem.PageSize + 1},
		{start + mem.PageSize, start + mem.PageSize},
	} {
		if got := m.Brk(test.to); got != test.want {
			t.Errorf("brk(%x) = %x, want %x", test.to, got, test.want)
		}
	}
	if r := tables.Store(m, start+mem.PageSize+1, 1); r != mem.MapError {
		t.Errorf("store behind the heap: %v", r)
	}
	mustMap(t, m, mem.Request{Addr: start + 4*mem.PageSize, Length: mem.PageSize, Flags: mem.MapPrivate | mem.MapFixed})
	if got := m.Brk(start + 4*mem.PageSize); got != start+mem.PageSize {
		t.Errorf("brk up to another region = %x", got)
	}
	if got := m.Brk(start + 3*mem.PageSize); got != start+3*mem.PageSize {
		t.Errorf("brk up to a page below another region = %x", got)
	}
}

// TestLimits: RLIMIT_AS limits all memory, RLIMIT_DATA private writable memory, and RLIMIT_MEMLOCK locked memory.
func TestLimits(t *testing.T) {
	const page = mem.PageSize
	l := mem.Limits{AS: 20 * page, Data: 10 * page, Memlock: 4 * page}
	m, _ := limited(l, &mem.Account{Total: 1 << 20})
	try := func(what string, q mem.Request, want error) {
		t.Helper()
		if _, err := m.Mmap(q); err != want {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	const private = mem.MapPrivate
	try("10 writable pages", mem.Request{Addr: 1 << 30, Length: 10 * page, Prot: rw, Flags: private | mem.MapFixed}, nil)
	try("another", mem.Request{Length: page, Prot: rw, Flags: private}, linux.ENOMEM)
	try("one in the place of another", mem.Request{Addr: 1 << 30, Length: page, Prot: rw, Flags: private | mem.MapFixed}, nil)
	try("a readable one", mem.Request{Addr: 2 << 30, Length: page, Prot: mem.Read, Flags: private | mem.MapFixed}, nil)
	if err := m.Mprotect(2<<30, page, uint32(rw)); err != linux.ENOMEM {
		t.Errorf("made writable: %v", err)
	}
	try("9 shared ones", mem.Request{Length: 9 * page, Prot: rw, Flags: mem.MapShared}, nil)
	try("one more than 20", mem.Request{Length: page, Flags: private}, linux.ENOMEM)
	if err := m.Mlock(1<<30, 4*page, 0); err != nil {
		t.Errorf("mlock of 4 pages: %v", err)
	}
	if err := m.Mlock(1<<30, 4*page, 0); err != nil {
		t.Errorf("mlock of the same 4: %v", err)
	}
	if err := m.Mlock(1<<30, 5*page, 0); err != linux.ENOMEM {
		t.Errorf("mlock of a fifth: %v", err)
	}
	if u := m.Usage(); u.Total != 20*page || u.Data != 10*page || u.Locked != 4*page || u.Private != 4*page {
		t.Errorf("%+v", u)
	}
	m.SetLimits(mem.Limits{AS: mem.Infinite, Data: mem.Infinite})
	if err := m.Mlock(2<<30, page, 0); err != linux.EPERM {
		t.Errorf("mlock with a limit of zero: %v", err)
	}
}

// TestOvercommit: the three modes of vm.overcommit_memory (proc_sys_vm(5)).
func TestOvercommit(t *testing.T) {
	const page = mem.PageSize
	big := mem.Request{Length: 101 * page, Prot: rw, Flags: mem.MapPrivate}
	fits := mem.Request{Length: 60 * page, Prot: rw, Flags: mem.MapPrivate}
	loose := big
	loose.Flags |= mem.MapNoReserve
	for _, test := range []struct {
		rule     mem.Overcommit
		requests []mem.Request
		last     error
		charged  int64
	}{
		{mem.Heuristic, []mem.Request{big}, linux.ENOMEM, 0},
		{mem.Heuristic, []mem.Request{fits, fits, fits}, nil, 180},
		{mem.Heuristic, []mem.Request{loose}, nil, 0},
		{mem.Always, []mem.Request{big, big}, nil, 202},
		{mem.Never, []mem.Request{fits, fits}, linux.ENOMEM, 60},
		{mem.Never, []mem.Request{loose}, linux.ENOMEM, 0},
	} {
		account := &mem.Account{Total: 100}
		account.SetRule(test.rule)
		account.SetRatio(100)
		m, _ := limited(noLimits(), account)
		var err error
		for _, q := range test.requests {
			_, err = m.Mmap(q)
		}
		if err != test.last || account.Committed() != test.charged {
			t.Errorf("rule %d: %v, %d pages charged, want %v, %d", test.rule, err, account.Committed(), test.last, test.charged)
		}
		m.Destroy()
		if n := account.Committed(); n != 0 {
			t.Errorf("rule %d: %d pages stay charged", test.rule, n)
		}
	}
}

// TestText: the lines of /proc/PID/maps and smaps.
func TestText(t *testing.T) {
	m, tables := limited(noLimits(), &mem.Account{Total: 1 << 20})
	m.SetBreak(0x1000000)
	m.Brk(0x1002000)
	mustMap(t, m, mem.Request{Addr: 0x7ffffffde000, Length: 0x21000, Prot: rw, Flags: mem.MapPrivate | mem.MapFixed | mem.MapGrowsDown})
	m.SetStack(0x7fffffffe000)
	file := mem.NewFixed(mem.Label{Path: "/bin/a\nb", Major: 0xfe, Inode: 247278})
	mustMap(t, m, mem.Request{Addr: 0x400000, Length: 0x2000, Prot: mem.Read | mem.Exec, Flags: mem.MapPrivate | mem.MapFixed, Object: file, Offset: 0x3000})
	mustMap(t, m, mem.Request{Addr: 0x7000000000, Length: 0x1000, Prot: mem.Read, Flags: mem.MapShared | mem.MapFixed})
	mustMap(t, m, mem.Request{Addr: 0x7000002000, Length: 0x1000, Flags: mem.MapPrivate | mem.MapFixed})
	const want = `00400000-00402000 r-xp 00003000 fe:00 247278                             /bin/a\012b
01000000-01002000 rw-p 00000000 00:00 0                                  [heap]
7000000000-7000001000 r--s 00000000 00:01 0                              /dev/zero (deleted)
7000002000-7000003000 ---p 00000000 00:00 0 
7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0                          [stack]
`
	if got := string(m.AppendMaps(nil)); got != want {
		t.Errorf("maps:\n%swant\n%s", got, want)
	}
	tables.Store(m, 0x1000000, 1)
	tables.Load(m, 0x1001000)
	smaps, next := m.Smaps(0, math.MaxInt)
	_, rest, _ := strings.Cut(string(smaps), "[heap]\n")
	for _, line := range []string{
		"Size:                  8 kB", "Rss:                   8 kB", "Shared_Clean:          4 kB", "Private_Dirty:         4 kB",
		"Anonymous:             8 kB", "VmFlags: rd wr mr mw me ac ",
	} {
		if section, _, _ := strings.Cut(rest, "7000000000"); !strings.Contains(section, line+"\n") {
			t.Errorf("smaps has no %q in\n%s", line, section)
		}
	}
	const sums = `00400000-7ffffffff000 ---p 00000000 00:00 0                              [rollup]
Rss:                   8 kB
Pss:                   6 kB
Pss_Dirty:             4 kB
Pss_Anon:              6 kB
Pss_File:              0 kB
Pss_Shmem:             0 kB
Shared_Clean:          4 kB
`
	if got := string(m.Rollup()); !strings.HasPrefix(got, sums) || strings.Contains(got, "Size:") || !strings.HasSuffix(got, "\nLocked:                0 kB\n") {
		t.Errorf("smaps_rollup:\n%s", got)
	}
	var parts []byte
	part, at := m.Smaps(0, 1)
	if len(part) >= len(smaps) {
		t.Error("a part of smaps is the whole text")
	}
	for parts = part; at != 0; parts = append(parts, part...) {
		part, at = m.Smaps(at, 1)
	}
	if next != 0 || string(parts) != string(smaps) {
		t.Errorf("next %#x after the whole of smaps; the parts are\n%s\nwant\n%s", next, parts, smaps)
	}
}

// The text of smaps needs few allocations for each region: a program with a thousand regions may read it hundreds of times.
func TestSmapsAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	m, _ := limited(noLimits(), &mem.Account{Total: 1 << 20})
	const at, regions, most = 0x7000000000, 256, 64
	mustMap(t, m, mem.Request{Addr: at, Length: regions << mem.PageShift, Prot: rw, Flags: mem.MapPrivate | mem.MapFixed})
	for i := uint64(0); i < regions; i += 2 {
		if err := m.Madvise(at+i<<mem.PageShift, mem.PageSize, mem.AdviseDontDump); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(10, func() { m.Smaps(0, math.MaxInt) }); n > most {
		t.Errorf("%v allocations for %d regions, want at most %d", n, regions, most)
	}
}

// MADV_WILLNEED succeeds without effect for anonymous memory, as on a Linux kernel with swap.
func TestWillNeedAnonymous(t *testing.T) {
	m, _ := limited(noLimits(), &mem.Account{Total: 1 << 20})
	at := mustMap(t, m, mem.Request{Length: 2 * mem.PageSize, Prot: rw, Flags: mem.MapPrivate})
	if err := m.Madvise(at, 2*mem.PageSize, mem.AdviseWillNeed); err != nil || m.Usage().Private != 0 {
		t.Errorf("anonymous memory: %v, %d bytes are present", err, m.Usage().Private)
	}
	if err := m.Madvise(at, 3*mem.PageSize, mem.AdviseWillNeed); err != linux.ENOMEM {
		t.Errorf("anonymous memory and a hole: %v", err)
	}
}

// Anonymous memory of /dev/zero has the permissions of the descriptor.
func TestMapZero(t *testing.T) {
	m, _ := limited(noLimits(), &mem.Account{Total: 1 << 20})
	for _, test := range []struct {
		what string
		q    mem.Request
		want error
	}{
		{"shared, for reading", mem.Request{Prot: mem.Read, Flags: mem.MapShared, Deny: mem.MayNotWrite}, nil},
		{"shared, for writing", mem.Request{Prot: rw, Flags: mem.MapShared, Deny: mem.MayNotWrite}, linux.EACCES},
		{"private, for writing", mem.Request{Prot: rw, Flags: mem.MapPrivate, Deny: mem.MayNotWrite}, nil},
		{"not opened for reading", mem.Request{Prot: rw, Flags: mem.MapShared, Unreadable: true}, linux.EACCES},
	} {
		test.q.Length = mem.PageSize
		if _, err := m.Mmap(test.q); err != test.want {
			t.Errorf("%s: %v, want %v", test.what, err, test.want)
		}
	}
}

// No huge pages are reserved, no file consists of them, and MAP_SHARED_VALIDATE is only for files.
func TestMapFlagsThatAreRefused(t *testing.T) {
	m, _ := limited(noLimits(), &mem.Account{Total: 1 << 20})
	for _, test := range []struct {
		flags uint32
		want  error
	}{
		{mem.MapPrivate | mem.MapAnonymous, nil},
		{mem.MapPrivate | mem.MapAnonymous | mem.MapHugeTLB, linux.ENOMEM},
		{mem.MapShared | mem.MapAnonymous | mem.MapHugeTLB, linux.ENOMEM},
		{mem.MapPrivate | mem.MapHugeTLB, linux.EINVAL},
		{mem.MapSharedValidate | mem.MapAnonymous, linux.EINVAL},
		{mem.MapSharedValidate | mem.MapAnonymous | 1<<30, linux.EINVAL},
		{mem.MapSharedValidate | 1<<30, linux.EOPNOTSUPP},
	} {
		if _, err := m.Mmap(mem.Request{Length: 2 << 20, Prot: rw, Flags: test.flags}); err != test.want {
			t.Errorf("flags %x: %v, want %v", test.flags, err, test.want)
		}
	}
}

// The estimate of the kernel's heap grows with the number of regions and of private pages, not with their size.
func TestHeapOfMap(t *testing.T) {
	m, tables := limited(noLimits(), &mem.Account{Total: 1 << 30})
	var heap []uint64
	for i, prot := range []mem.Prot{mem.Read | mem.Write, mem.Read, mem.Read | mem.Write} { // neighbours with equal rights are one region
		at, err := m.Mmap(mem.Request{Length: mem.PageSize << (4 * i), Prot: prot, Flags: mem.MapPrivate | mem.MapAnonymous | mem.MapNoReserve})
		if err != nil {
			t.Fatal(err)
		}
		heap = append(heap, m.Usage().Heap)
		if i == 2 {
			tables.Store(m, at, 1)
			heap = append(heap, m.Usage().Heap)
		}
	}
	if heap[0] == 0 || heap[1] != 2*heap[0] || heap[2] != 3*heap[0] || heap[3] <= heap[2] {
		t.Errorf("one to three regions, and a page: %d bytes", heap)
	}
}
