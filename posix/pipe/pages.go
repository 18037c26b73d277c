package pipe

// pageSize is the size of a page of a pipe in bytes.
const pageSize = 4096

// pages is the buffer of a pipe: a ring of pages, as on Linux. A write appends to the last page if the write fits there;
// otherwise, it begins a new page. So the number of free pages decides whether a write finds room, not the number of free
// bytes. The lock of the pipe guards all fields.
type pages struct {
	capacity int    // number of pages, a power of two
	memory   []byte // the pages, or only the first one: see allocate
	data     []data // data in each page
	first    int    // index of the oldest page with data
	used     int    // number of pages with data, from first on
	held     int    // number of bytes in all pages
}

// data describes the unread data of a page.
type data struct {
	start, end uint16 // offsets in the page
	grows      bool   // whether a write may append to the data
	packet     bool   // whether a read ends after the data, and drops the part that it does not take
}

// full reports whether all pages have data. Only a write that can append to the last page finds room then.
func (p *pages) full() bool { return p.used == p.capacity }

// at returns the index of a page: 0 is the oldest page with data, and used is the next free page.
func (p *pages) at(i int) int { return (p.first + i) & (p.capacity - 1) }

// unread returns the unread data of the page with an index.
func (p *pages) unread(i int) []byte {
	return p.memory[i*pageSize+int(p.data[i].start) : i*pageSize+int(p.data[i].end)]
}

// write stores data of a write call, and returns the number of stored bytes. As on Linux, the odd bytes of the call beyond
// a multiple of the page size come first if they fit into the last page.
func (p *pages) write(b []byte, packet bool) int {
	done := p.append(b[:len(b)%pageSize])
	for done < len(b) && !p.full() {
		i := p.at(p.used)
		p.allocate(i)
		n := copy(p.memory[i*pageSize:(i+1)*pageSize], b[done:])
		p.add(i, data{end: uint16(n), grows: !packet, packet: packet})
		done += n
	}
	return done
}

// append stores b in the last page, and returns the length of b; or it returns 0 if b does not fit there.
func (p *pages) append(b []byte) int {
	if p.used == 0 {
		return 0
	}
	i := p.at(p.used - 1)
	last := &p.data[i]
	if !last.grows || int(last.end)+len(b) > pageSize {
		return 0
	}
	copy(p.memory[i*pageSize+int(last.end):], b)
	last.end += uint16(len(b))
	p.held += len(b)
	return len(b)
}

// add makes a free page the last page with data.
func (p *pages) add(i int, d data) {
	p.data[i] = d
	p.used++
	p.held += int(d.end - d.start)
}

// allocate makes memory for a page, and for those before it. Most pipes never need more than the first page.
func (p *pages) allocate(page int) {
	if page*pageSize < len(p.memory) {
		return
	}
	size := pageSize
	if page > 0 {
		size *= p.capacity
	}
	memory := make([]byte, size)
	copy(memory, p.memory)
	p.memory = memory
	if p.data == nil {
		p.data = make([]data, p.capacity)
	}
}

// read removes data for a read call, and returns the number of bytes stored in b.
func (p *pages) read(b []byte) (done int) {
	for done < len(b) && p.used > 0 {
		n := copy(b[done:], p.unread(p.first))
		done += n
		if p.data[p.first].packet {
			p.consume(len(p.unread(p.first)))
			break
		}
		p.consume(n)
	}
	return done
}

// consume removes n bytes from the start of the data, and releases the pages that become empty.
func (p *pages) consume(n int) {
	p.held -= n
	for n > 0 {
		d := &p.data[p.first]
		part := min(n, int(d.end-d.start))
		d.start += uint16(part)
		n -= part
		if d.start == d.end {
			p.first = p.at(1)
			p.used--
		}
	}
	if p.used == 0 {
		p.first = 0 // small messages then use the same page again, which is in the processor's cache
	}
}

// front returns up to n unread bytes as one slice. It returns fewer if the data is not contiguous.
func (p *pages) front(n int) []byte {
	start := p.first*pageSize + int(p.data[p.first].start)
	end := start
	for i := p.first; i < min(p.first+p.used, p.capacity) && end == i*pageSize+int(p.data[i].start) && end-start < n; i++ {
		end = i*pageSize + int(p.data[i].end)
	}
	return p.memory[start:min(end, start+n)]
}

// back returns up to n bytes of free pages as one slice. It returns fewer if the free pages wrap around the end of the ring.
// fill adds them to the data. The pipe is not full.
func (p *pages) back(n int) []byte {
	i := p.at(p.used)
	n = min(n, min(p.capacity-p.used, p.capacity-i)*pageSize)
	p.allocate(i + (n-1)/pageSize)
	return p.memory[i*pageSize:][:n]
}

// fill adds n bytes to the data, which the caller has stored in the slice that back returned.
func (p *pages) fill(n int) {
	for ; n > 0; n -= pageSize {
		p.add(p.at(p.used), data{end: uint16(min(n, pageSize))})
	}
}

// insert stores as many bytes of b as there is room for in free pages, and returns their number.
func (p *pages) insert(b []byte) (done int) {
	for done < len(b) && !p.full() {
		n := copy(p.back(len(b)-done), b[done:])
		p.fill(n)
		done += n
	}
	return done
}

// copyFrom copies up to n bytes from another pipe, page by page, and returns their number. With consume, it removes the
// bytes from the other pipe; a page that moves as a whole then continues to grow.
func (p *pages) copyFrom(from *pages, n int, consume bool) (done int) {
	for i := 0; done < n && i < from.used && !p.full(); {
		source, target := from.at(i), p.at(p.used)
		d := from.data[source]
		size := min(n-done, int(d.end-d.start))
		d.grows = d.grows && consume && size == int(d.end-d.start)
		d.end = d.start + uint16(size)
		p.allocate(target)
		copy(p.memory[target*pageSize+int(d.start):], from.unread(source)[:size])
		p.add(target, d)
		done += size
		if consume {
			from.consume(size)
		} else {
			i++
		}
	}
	return done
}

// resize changes the number of pages, which is at least used.
func (p *pages) resize(capacity int) {
	resized := pages{capacity: capacity}
	resized.copyFrom(p, p.held, true)
	*p = resized
}
