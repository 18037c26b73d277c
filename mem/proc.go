package mem

import (
	"strconv"
	"strings"
)

// Usage holds the sizes of a map for /proc/PID/statm and status, in bytes.
type Usage struct {
	Total, Data, Stack, Locked uint64
	Private                    uint64 // number of bytes in private pages that are present
	Tables                     uint64 // number of bytes in page tables
	Heap                       uint64 // estimated number of bytes of the kernel's heap
}

// Pages returns the number of pages that the end of the process frees.
func (u Usage) Pages() int64 { return int64((u.Private + u.Tables) >> PageShift) }

// Estimated bytes of the kernel's heap for a region, for an entry of the table of private pages with its leaf, and for a private page.
const (
	heapOfRegion = 256
	heapOfLeaf   = 128
	heapOfPage   = 16
)

// heap estimates the bytes of the kernel's heap that the map keeps. The caller holds mu.
func (m *Map) heap() uint64 {
	return uint64(m.regions.count)*heapOfRegion + uint64(len(m.private.leaves))*heapOfLeaf + uint64(m.private.pages)*heapOfPage
}

// Usage returns the sizes of all regions together.
func (m *Map) Usage() Usage {
	m.lock()
	defer m.unlock()
	s := m.sizes
	return Usage{s.total, s.data, s.stack, s.locked, uint64(m.private.pages) << PageShift, uint64(m.tables.Size()) << PageShift, m.heap()}
}

// nameColumn is the column of a line of /proc/PID/maps in which the path begins.
const nameColumn = 73

// AppendMaps appends the text of /proc/PID/maps.
func (m *Map) AppendMaps(b []byte) []byte {
	m.lock()
	defer m.unlock()
	m.regions.each(func(r *Region) bool {
		b = m.appendLine(b, r)
		return true
	})
	return b
}

func (m *Map) appendLine(b []byte, r *Region) []byte {
	var l Label
	offset := uint64(0)
	if r.object != nil {
		l, offset = r.object.Label(), r.offset<<PageShift
	}
	sharing := byte('p')
	if r.has(SharedRegion) {
		sharing = 's'
	}
	l.Path = strings.ReplaceAll(m.name(r, l), "\n", `\012`)
	return r.appendColumns(b, sharing, offset, l)
}

// appendColumns appends a line of /proc/PID/maps. The path of the label is the last column, if it is not empty.
func (r *Region) appendColumns(b []byte, sharing byte, offset uint64, l Label) []byte {
	begin := len(b)
	b = appendNumber(b, r.start, 16, '0', 8)
	b = appendNumber(append(b, '-'), r.end, 16, '0', 8)
	b = r.prot.append(append(b, ' '))
	b = appendNumber(append(b, sharing, ' '), offset, 16, '0', 8)
	b = appendNumber(append(b, ' '), uint64(l.Major), 16, '0', 2)
	b = appendNumber(append(b, ':'), uint64(l.Minor), 16, '0', 2)
	b = append(strconv.AppendUint(append(b, ' '), l.Inode, 10), ' ')
	if l.Path != "" {
		for len(b)-begin < nameColumn {
			b = append(b, ' ')
		}
		b = append(b, l.Path...)
	}
	return append(b, '\n')
}

// appendNumber appends a number with at least width digits. If it has fewer, the character pad precedes it. Package fmt
// needs several times as long, and smaps has twenty numbers for each region.
func appendNumber(b []byte, n uint64, base int, pad byte, width int) []byte {
	var digits [20]byte
	d := strconv.AppendUint(digits[:0], n, base)
	for i := len(d); i < width; i++ {
		b = append(b, pad)
	}
	return append(b, d...)
}

// name returns the text of the last column of /proc/PID/maps.
func (m *Map) name(r *Region, l Label) string {
	switch {
	case r.object != nil:
		return l.Path
	case r.start <= m.brkEnd && r.end >= m.brkStart && m.brkStart < m.brkEnd:
		return "[heap]"
	case m.stack != 0 && r.start <= m.stack && r.end >= m.stack:
		return "[stack]"
	}
	return ""
}

// share holds numbers of pages of a region, as /proc/PID/smaps classifies them.
type share struct {
	private, shared, anonymous, big uint64
	file, memory                    uint64 // pages of objects; memory: if the object is in memory (Label.Memory)
	locked                          uint64
	eligible                        uint64 // 1 if page faults may use blocks in the region
}

// add adds the numbers of pages of another region.
func (s *share) add(t share) {
	s.private, s.shared, s.anonymous, s.big = s.private+t.private, s.shared+t.shared, s.anonymous+t.anonymous, s.big+t.big
	s.file, s.memory, s.locked = s.file+t.file, s.memory+t.memory, s.locked+t.locked
}

// Smaps returns a part of the text of /proc/PID/smaps: the regions from address from on, until the text has at least size
// bytes. next is the address at which the following part begins, or 0 at the end. For an object it counts the pages that
// are present in the object, whether or not this process has used them. Pss divides a private page by the number of
// processes that share it after a fork.
func (m *Map) Smaps(from uint64, size int) (text []byte, next uint64) {
	const perRegion, most = 1 << 10, 1 << 16 // sizes in bytes: of the text of a region, and of the first allocation
	text = make([]byte, 0, min(size, most)+perRegion)
	m.lock()
	defer m.unlock()
	for r := m.regions.find(from); r != nil; r = m.regions.find(r.end) {
		if len(text) >= size {
			return text, r.start
		}
		text = m.appendLine(text, r)
		s := m.usage(r)
		text = r.appendEligible(s.append(r.appendSizes(text), false), s)
		text = append(r.appendLetters(text), '\n')
	}
	return text, 0
}

// Rollup returns the text of /proc/PID/smaps_rollup: the numbers of all regions together.
func (m *Map) Rollup() []byte {
	var (
		whole Region
		sum   share
	)
	m.lock()
	defer m.unlock()
	m.regions.each(func(r *Region) bool {
		if whole.end == 0 {
			whole.start = r.start
		}
		whole.end = r.end
		sum.add(m.usage(r))
		return true
	})
	return sum.append(whole.appendColumns(nil, 'p', 0, Label{Path: "[rollup]"}), true)
}

// usage counts the pages of a region. For private memory it visits the pages in the table; for an object it visits
// every index.
func (m *Map) usage(r *Region) (s share) {
	first, last := r.start>>PageShift, r.end>>PageShift
	if m.eligible(r) && blockUp(r.start)+BlockSize <= r.end {
		s.eligible = 1
	}
	if r.private() {
		m.private.each(first, last, func(n uint64, p Page) {
			s.anonymous++
			if _, exclusive := m.private.get(n); exclusive && m.owned(p) {
				s.private++
			} else {
				s.shared++
			}
			if m.private.leaf(n).big != nil && r.hasBlock(n<<PageShift) {
				s.big++
			}
		})
	}
	if r.object != nil {
		n := &s.file
		if r.object.Label().Memory {
			n = &s.memory
		}
		*n = m.peeked(r)
		s.shared += *n
	}
	if r.has(Locked) {
		s.locked = s.private + s.shared
	}
	return s
}

// peeked counts the pages of a region that are present in its object, and that no private page replaces.
func (m *Map) peeked(r *Region) (count uint64) {
	for n := r.start >> PageShift; n < r.end>>PageShift; n++ {
		if p, _ := m.private.get(n); (p == 0 || !r.private()) && r.object.Peek(r.index(n<<PageShift)) != 0 {
			count++
		}
	}
	return count
}

const kB = PageSize >> 10 // size of a page

// appendRow appends a line of smaps.
func appendRow(b []byte, name string, n uint64) []byte {
	const columns = 24 // of the name, the colon and the number
	b = append(append(b, name...), ':')
	return append(appendNumber(b, n, 10, ' ', columns-len(name)-1), " kB\n"...)
}

// appendSizes appends the lines of a region in smaps that precede the numbers of pages.
func (r *Region) appendSizes(b []byte) []byte {
	b = appendRow(b, "Size", r.size()>>10)
	b = appendRow(b, "KernelPageSize", kB)
	return appendRow(b, "MMUPageSize", kB)
}

// append appends the numbers of pages. smaps_rollup has three lines that smaps has not.
func (s *share) append(b []byte, rollup bool) []byte {
	row := func(name string, n uint64) { b = appendRow(b, name, n) }
	row("Rss", (s.private+s.shared)*kB)
	row("Pss", s.private*kB+s.shared*kB/2)
	row("Pss_Dirty", s.private*kB)
	if rollup {
		row("Pss_Anon", s.private*kB+(s.shared-s.file-s.memory)*kB/2)
		row("Pss_File", s.file*kB/2)
		row("Pss_Shmem", s.memory*kB/2)
	}
	row("Shared_Clean", s.shared*kB)
	row("Shared_Dirty", 0)
	row("Private_Clean", 0)
	row("Private_Dirty", s.private*kB)
	row("Referenced", (s.private+s.shared)*kB)
	row("Anonymous", s.anonymous*kB)
	row("KSM", 0)      // pages with the same content are not merged
	row("LazyFree", 0) // MADV_FREE frees pages at once
	row("AnonHugePages", s.big*kB)
	for _, name := range [...]string{"ShmemPmdMapped", "FilePmdMapped", "Shared_Hugetlb", "Private_Hugetlb"} {
		row(name, 0) // only private anonymous memory has huge pages
	}
	row("Swap", 0)
	row("SwapPss", 0)
	row("Locked", s.locked*kB)
	return b
}

// appendEligible appends the line THPeligible, and the begin of the line of flags.
func (r *Region) appendEligible(b []byte, s share) []byte {
	b = appendNumber(append(b, "THPeligible:    "...), s.eligible, 10, ' ', 8)
	return append(b, "\nVmFlags: "...)
}

// Vsyscall is the line of the vsyscall page in /proc/PID/maps. The page is part of no region: package trap serves it.
const Vsyscall = "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n"

// AppendVsyscall appends the lines of the vsyscall page in /proc/PID/smaps.
func AppendVsyscall(b []byte) []byte {
	r := Region{end: PageSize} // only the size counts
	s := share{}
	b = s.append(r.appendSizes(append(b, Vsyscall...)), false)
	return append(r.appendEligible(b, s), "ex \n"...)
}

// appendLetters appends the two-letter codes of smaps' VmFlags.
func (r *Region) appendLetters(b []byte) []byte {
	code := func(on bool, text string) {
		if on {
			b = append(append(b, text...), ' ')
		}
	}
	code(r.prot&Read != 0, "rd")
	code(r.prot&Write != 0, "wr")
	code(r.prot&Exec != 0, "ex")
	code(r.has(SharedRegion), "sh")
	code(true, "mr")
	code(!r.has(MayNotWrite), "mw")
	code(!r.has(MayNotExec), "me")
	code(r.has(SharedRegion), "ms")
	code(r.has(GrowsDown), "gd")
	code(r.has(Locked), "lo")
	code(r.has(Sequential), "sr")
	code(r.has(Random), "rr")
	code(r.has(DontFork), "dc")
	code(r.has(Special), "de")
	code(r.has(Charged), "ac")
	code(r.has(NoReserve), "nr")
	code(r.has(WipeOnFork), "wf")
	code(r.has(DontDump), "dd")
	code(r.has(HugePages), "hg")
	code(r.has(NoHugePages), "nh")
	code(r.has(Sealed), "sl")
	return b
}
