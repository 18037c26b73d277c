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
}

// Pages returns the number of pages that the end of the process frees.
func (u Usage) Pages() int64 { return int64((u.Private + u.Tables) >> PageShift) }

// Usage returns the sizes of all regions together.
func (m *Map) Usage() Usage {
	m.lock()
	defer m.unlock()
	s := m.sizes
	return Usage{s.total, s.data, s.stack, s.locked, uint64(m.private.pages) << PageShift, uint64(m.tables.Size()) << PageShift}
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
	begin := len(b)
	b = appendNumber(b, r.start, 16, '0', 8)
	b = appendNumber(append(b, '-'), r.end, 16, '0', 8)
	b = r.prot.append(append(b, ' '))
	b = appendNumber(append(b, sharing, ' '), offset, 16, '0', 8)
	b = appendNumber(append(b, ' '), uint64(l.Major), 16, '0', 2)
	b = appendNumber(append(b, ':'), uint64(l.Minor), 16, '0', 2)
	b = append(strconv.AppendUint(append(b, ' '), l.Inode, 10), ' ')
	if name := m.name(r, l); name != "" {
		for len(b)-begin < nameColumn {
			b = append(b, ' ')
		}
		b = append(b, strings.ReplaceAll(name, "\n", `\012`)...)
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
	eligible                        uint64 // 1 if page faults may use blocks in the region
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
		text = append(r.appendLetters(r.appendUse(text, m.usage(r))), '\n')
	}
	return text, 0
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
	if r.object == nil {
		return s
	}
	for n := first; n < last; n++ {
		if p, _ := m.private.get(n); (p == 0 || !r.private()) && r.object.Peek(r.index(n<<PageShift)) != 0 {
			s.shared++
		}
	}
	return s
}

// appendUse appends the lines of a region in smaps, except for the first line and the flags at the end.
func (r *Region) appendUse(b []byte, s share) []byte {
	const kB = PageSize >> 10
	row := func(name string, n uint64) {
		const columns = 24 // of the name, the colon and the number
		b = append(append(b, name...), ':')
		b = append(appendNumber(b, n, 10, ' ', columns-len(name)-1), " kB\n"...)
	}
	row("Size", r.size()>>10)
	row("KernelPageSize", kB)
	row("MMUPageSize", kB)
	row("Rss", (s.private+s.shared)*kB)
	row("Pss", (s.private+s.shared/2)*kB)
	row("Pss_Dirty", s.private*kB)
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
	locked := uint64(0)
	if r.has(Locked) {
		locked = (s.private + s.shared) * kB
	}
	row("Locked", locked)
	b = appendNumber(append(b, "THPeligible:    "...), s.eligible, 10, ' ', 8)
	return append(b, "\nVmFlags: "...)
}

// Vsyscall is the line of the vsyscall page in /proc/PID/maps. The page is part of no region: package trap serves it.
const Vsyscall = "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n"

// AppendVsyscall appends the lines of the vsyscall page in /proc/PID/smaps.
func AppendVsyscall(b []byte) []byte {
	r := Region{end: PageSize} // only the size counts
	return append(r.appendUse(append(b, Vsyscall...), share{}), "ex \n"...)
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
